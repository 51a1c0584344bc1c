"""Learning, in PyTorch: the model of `glass/` again, batched, and everything that changes its parameters.

Read in this order: weights (one flat vector), model (ids → rows), attention, dropout, loss, batches, schedule, train
(the loop), checkpoint (how it survives a kill), decode (translating with the model in training).
"""

"""Learning, in PyTorch: the model of `glass/` again, batched, and everything that changes its parameters.

Read in this order:
  plain       the whole of training on one screen, for a lesson's model
  weights, model, attention, dropout, loss, optimiser, schedule, batches       the parts, made for large data
  train, state, keeper, checkpoint, best       the loop, what a run is, how it survives a kill, its best models
  together, sharded, workplace      several processes as one, a model shared out over them, who makes the data
  recipe, tasks, memory, planning, run       what is chosen, and from files to a trained model
  decode, judge, validate, tensorboard       how good it is meanwhile
Where the pairs come from: pairs, clean, split, sift, prepare, store (docs/data.md).
"""

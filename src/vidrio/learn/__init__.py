"""Learning, in PyTorch: the model of `glass/` again, batched, and everything that changes its parameters.

Read in this order:
  plain                    the whole of training on one screen, for a lesson's model
  train                    a training of your own, phase after phase:
    task                   the user's files → something to learn from (data/: read → clean → prepare)
    plan, choose           what is asked for, and what a run learns by
    batches, model, loss   pairs → batches → predictions → loss (parameters: of the model)
    loop                   batch → gradient → step → metrics → validate (optimiser: the step itself)
    state, run_files       what a run is, and what it leaves on disk
    validate               how good the model is
  machine, processes       what it trains on; several processes as one
"""

"""Learning, in PyTorch: the model of `glass/` again, batched, and everything that changes its parameters.

Read in this order:
  plain                    the whole of training on one screen, for a lesson's model
  train                    a training of your own, phase after phase:
    task                   the user's files → something to learn from
    plan, choose           what is asked for, what a run learns by, and how that is chosen
    loop                   batches → loss → gradient → step → state → validate
    state, run_files       what a run is, and what it leaves on disk
    validate, finish       how good the model is; the best one, judged and written
  batches, model, loss     parts of a step: pairs → batches → predictions → loss (parameters, dropout: of the model)
  optimiser                the step itself
  machine, halves          what it trains on, and how it is fast there
  processes                several processes as one
"""

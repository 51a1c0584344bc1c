"""Training in PyTorch: the model of `glass/` again, batched, with everything that changes its parameters.

Read in this order:
  train                    a training run, phase after phase:
    task                   what is asked for; the user's files → ids to learn from (data/: read → clean → prepare)
    plan                   what the run learns by: sizes, rates, batches, when to stop
    batches, model, loss   pairs → batches → predictions → loss
    parameters             all trained numbers as one vector, and a step that changes them
    loop                   batch → gradient → step → metrics → validate
    validate               how good the model is meanwhile
    state                  all that a run has learned so far, and its folder
  machine                  threads, memory, device; several processes as one
"""

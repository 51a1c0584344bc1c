"""Training in PyTorch: a batched implementation of the model in `glass/`, with loss, gradients and optimisers.

Read the modules in this order:
  train                    a training run from start to finish:
    task                   the user's request and data: files → token ids (data/: read → clean → prepare)
    plan                   the settings of the run: sizes, learning rate, batches, end of training
    batches, model, loss   pairs → batches → predictions → loss
    parameters             all parameters as one flat vector, and the optimisers that update it
    loop                   batch → gradient → step → metrics → validation
    validate               scores on held-out sentences during training
    state                  the state of a run and its folder
  machine                  threads, memory, devices and distributed processes
"""

"""Train models in PyTorch: a batched implementation of the model in `glass/`, with loss, gradients and optimisers.

Read the modules in this order:
  train                    a complete training run:
    task                   the user's request and the data: files → token ids (data/: read → clean → prepare)
    plan                   the settings of the run: model sizes, learning rate, batch size, training time
    batches, model, loss   pairs → batches → predictions → loss
    parameters             all parameters as one flat vector, and the optimisers that update it
    loop                   batch → gradient → step → metrics → validation
    validate               scores on held-out sentences during training
    state                  the state of a run, and the folder that stores it
  machine                  threads, memory, devices and distributed processes
"""

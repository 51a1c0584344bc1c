"""Learning, in PyTorch: the model of `glass/` again, batched, and everything that changes its parameters.

Read in this order:
  plain                    the whole of training on one screen, for a lesson's model
  train                    a training of your own, phase after phase, and of each phase the file in run/:
    run/request            what is asked for
    run/prepare            sentence pairs → something to learn from (run/prepare_texts: classes, texts to write like)
    run/choose, plan       how a run is chosen and what fits into memory; what it learns by and is held to
    run/state, run_files   what a run is, and what it leaves on disk
    run/loop, validate     the loop, and how good the model is meanwhile
    run/finish             the best model, its judgement, the card, the model's folder
    run/machine            what it trains on, and settings that make it fast there
  batches, optimiser, net/ parts of a step: pairs → batches; the model, its loss; Adam
  processes                several processes as one, and which of them makes the data
"""

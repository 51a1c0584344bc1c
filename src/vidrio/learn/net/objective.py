"""What training makes small: the loss of saying what is expected, for a whole batch, once or with R-Drop."""

from torch import Tensor

from vidrio.learn.batches import Batch
from vidrio.learn.net import model
from vidrio.learn.net.loss import smoothed_cross_entropy


def objective(net: model.Network, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss summed over a batch: with label smoothing, and without."""
    rows = predict(net, batch)
    W_VD, b_V = model.output(net)
    return smoothed_cross_entropy(rows.flatten(0, -2), W_VD, b_V, batch.expected_BT.flatten(), smoothing)


def objective_twice(net: model.Network, batch: Batch, smoothing: float, r_drop: float) -> tuple[Tensor, Tensor]:
    """The same with R-Drop: each sentence goes through the model twice, with other values dropped. The loss is the mean
    of both, plus α (KL(p‖q) + KL(q‖p)) / 4: half of the paper's, so that a gradient is as long as without.
    """
    rows = predict(net, batch.twice())
    # Sentence by sentence → target by target, the two predictions of each next to each other.
    rows_BT2D = rows.view(len(batch.expected_BT), 2, -1, rows.shape[-1]).transpose(1, 2)
    targets = batch.expected_BT.flatten().repeat_interleave(2)
    loss, nll = smoothed_cross_entropy(rows_BT2D.flatten(0, -2), *model.output(net), targets, smoothing, r_drop)
    return loss / 2, nll / 2


def predict(net: model.Network, batch: Batch) -> Tensor:
    """The rows from which the expected tokens (or the class) are predicted. Teacher forcing: the decoder reads the
    right answer so far, whatever it would have said itself.
    """
    if not net.config.has_encoder:
        return model.decode(net, batch.target_BT)
    memory = model.encode(net, batch.source_BS, batch.source_lengths_B)
    if not net.config.has_decoder:
        return model.pool(memory, batch.source_lengths_B)
    allowed = model.within_lengths(batch.source_BS, batch.source_lengths_B)
    return model.decode(net, batch.target_BT, memory, allowed)

"""Two epochs of a tiny model in PyTorch Lightning, with the callback of the package."""

import logging
import warnings

import torch

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
from flarena.lightning import MemoryMarkers  # noqa: E402
from lightning.pytorch import LightningModule, Trainer  # noqa: E402


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        return self.layer(batch).square().mean()

    def validation_step(self, batch, _):
        self.layer(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


data = torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=4)
trainer = Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[MemoryMarkers(site="rank-0")],
)
trainer.fit(Model(), data, data)

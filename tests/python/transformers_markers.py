"""Two epochs of a tiny model in the Trainer of Hugging Face, with the callback of the package."""

import sys

import torch
from flarena.transformers import MemoryMarkers
from transformers import Trainer, TrainingArguments


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        return {"loss": (self.layer(x) - labels).square().mean(), "logits": labels}


data = [{"x": torch.ones(4), "labels": torch.ones(1)}] * 8
arguments = TrainingArguments(
    output_dir=sys.argv[1],
    num_train_epochs=2,
    evaluation_strategy="epoch",
    save_strategy="epoch",
    use_cpu=True,
    report_to=[],
    disable_tqdm=True,
)
Trainer(Model(), arguments, train_dataset=data, eval_dataset=data, callbacks=[MemoryMarkers(site="rank-0")]).train()

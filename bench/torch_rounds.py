"""Federated-learning rounds of a PyTorch trainer on the CPU.

    torch_rounds.py --wire FILE --rounds N --steps N --idle S --final-idle S --threads N
    torch_rounds.py --wire FILE --make            (writes the state dict)

A round: load a state dict from bytes, train a transformer of about 50 M parameters for some steps with changing
sequence lengths, save the state dict, drop everything, idle. The state dict is read from a file, so that this process
has no copy of the sender. All contenders must end with the same loss.
"""

import argparse
import io
import time

import rounds
import torch

VOCABULARY, WIDTH, LAYERS, BATCH = 24_000, 512, 12, 4
LENGTHS = (64, 200, 96, 256, 128, 160)  # tokens; a real batch is as long as its longest text


class Transformer(torch.nn.Module):
    """12.3 M parameters in the embedding, which the output shares, and 37.8 M in the layers."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS)

    def forward(self, tokens):
        return self.layers(self.embedding(tokens)) @ self.embedding.weight.T


def make_wire(path):
    torch.manual_seed(1)
    torch.save(Transformer().state_dict(), path)


def read_payload(path):
    with open(path, "rb") as wire:
        return wire.read()


class Trainer:
    def __init__(self, path, steps):
        self.path, self.steps, self.train_s, self.loss = path, steps, [], 0.0

    def make(self):
        model = Transformer()
        return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def round(self, number):
        model, optimizer = self.make()
        model.load_state_dict(torch.load(io.BytesIO(read_payload(self.path))))
        start = time.monotonic()
        for step in range(self.steps):
            self.loss = self.train_step(model, optimizer, LENGTHS[step % len(LENGTHS)], seed=step)
        self.train_s.append(time.monotonic() - start)
        torch.save(model.state_dict(), io.BytesIO())

    def train_step(self, model, optimizer, length, seed):
        generator = torch.Generator().manual_seed(seed)
        tokens = torch.randint(VOCABULARY, (BATCH, length + 1), generator=generator)
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wire", required=True)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--idle", type=float, default=1.0)
    parser.add_argument("--final-idle", type=float, default=6.0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.make:
        return make_wire(options.wire)
    trainer = Trainer(options.wire, options.steps)
    numbers = rounds.run(options.rounds, trainer.round, options.idle, options.final_idle)
    train_s = sorted(trainer.train_s)[len(trainer.train_s) // 2]
    rounds.report(**numbers, train_s=train_s, checksum=round(trainer.loss, 1))


if __name__ == "__main__":
    main()

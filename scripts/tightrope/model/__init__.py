"""PyTorch classifier, its activation functions and its configuration.

- `config`, `module`, `classifier`: config.json, the module that is run, the classifier
- `activations`, `fast_swish_kernels`: activations that take the place of the checkpoint's own
- `importance`, `pruning`, `structures`: which layers, neurons and heads a smaller model keeps
- `unpadded`: an encoder that computes no padding
"""

"""A real classifier set, and people's opinions to hold it against: 14 networks on CIFAR-10."""

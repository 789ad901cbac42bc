"""Images of the deep experiment: data sets, pretrained networks, and features of one by the other."""

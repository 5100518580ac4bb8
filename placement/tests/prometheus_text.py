"""Parses the text of metrics."""

from prometheus_client import parser

# The keys are the name of the metric and the values of its labels, in the order of their names.
Samples = dict[tuple[str, ...], float]


def parse(text: str) -> Samples:
    """Return the samples in a text of metrics.

    :raises ValueError: the text is malformed, or contains a sample twice
    """
    samples: Samples = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            labels = (sample.labels[name] for name in sorted(sample.labels))
            key = sample.name, *labels
            if key in samples:
                raise ValueError(f'The sample {key} is repeated')
            samples[key] = sample.value
    return samples

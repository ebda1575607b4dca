"""Programs that start others, for the tests of child processes."""

from interpose.analysis.recording.lineage import tree, walk


def told(experiment):
    """Lineage (or none), state and exit status or signal of each process, in the order of the tree."""
    found = [(node, node.ending) for _, node in walk(tree(experiment))]
    return [
        (node.process.lineage if node.is_followed else None, end.state, end.status or end.signal) for node, end in found
    ]

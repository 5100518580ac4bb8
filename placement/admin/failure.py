"""The error of a command that cannot do its work."""


class CannotProceedError(RuntimeError):
    """The command cannot do its work. The message is one sentence for the operator."""

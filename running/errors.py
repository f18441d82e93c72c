"""Errors of the running stage; each message says what is wrong and what to do about it.

RunningError
├── ToolMissingError    a program is not on this machine
├── BuildFailedError    a program could not be built or unpacked
├── PortTakenError      another process listens where one of ours has to
├── FleetRefusedError   fleet.yml does not pass its check, or its rules cannot be generated
├── RunDirectoryError   data and logs cannot be written
├── AlreadyUpError      `make up` runs already
├── NotReadyError       a process runs but does not answer in time
├── CheckFailedError    something in the checkout does not pass its tool
└── ProcessDiedError    a process ended by itself
"""


class RunningError(Exception):
    """Anything that keeps the product from running on this machine."""


class ToolMissingError(RunningError):
    """A program is not on this machine."""


class BuildFailedError(RunningError):
    """A program could not be built or unpacked."""


class PortTakenError(RunningError):
    """Another process listens where one of ours has to."""


class FleetRefusedError(RunningError):
    """The fleet file does not pass its check, or its rules cannot be generated."""


class RunDirectoryError(RunningError):
    """The directory for data and logs cannot be written: a full disk, a read-only checkout."""


class AlreadyUpError(RunningError):
    """Our processes run already, started elsewhere."""


class NotReadyError(RunningError):
    """A process runs but does not answer in time."""


class CheckFailedError(RunningError):
    """Something in the checkout does not pass its tool."""


class ProcessDiedError(RunningError):
    """A process ended by itself."""

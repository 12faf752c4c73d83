"""``mlestruct roommates serve``: a small page on this machine, from files to an accepted plan.

The standard library's server on 127.0.0.1 only, one random token in every address, nothing asked
from outside: what people answered never leaves the machine.
"""

from mlestruct.serve.server import serve

__all__ = ["serve"]

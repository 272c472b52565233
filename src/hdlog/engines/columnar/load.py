from hdlog.engines.load import *  # noqa: F403
from hdlog.engines.load import _MAKERS, _any_text, _BadValue, _content, _float_text, _graph_text, _number_text  # noqa: F401

#!/bin/sh
# Shows the messages that wait for this agent to its model: after the tools of a step, and when it would
# stop. Nothing here may hold the session up where Stafette is missing.
command -v stafette >/dev/null 2>&1 || exit 0
exec stafette mail

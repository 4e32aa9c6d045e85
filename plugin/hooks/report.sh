#!/bin/sh
# Tells Stafette what this session is doing, as the line that `stafette top` shows beside it. Outside
# of a session that Stafette started there is nobody to tell. Nothing here may hold the session up,
# so that it ends well whatever happens, and prints nothing.
[ -n "$STAFETTE_TOKEN" ] && [ -n "$STAFETTE_SOCKET" ] || exit 0
command -v stafette >/dev/null 2>&1 || exit 0

# The first field of that name; tools are called by letters, digits, `_`, `-` and `.`.
tool() {
    grep -o '"tool_name" *: *"[A-Za-z0-9_.-]*"' | head -n 1 | sed 's/.*"\([^"]*\)"$/\1/'
}

case "$1" in
    SessionStart) note="is ready" ;;
    UserPromptSubmit) note="reads the request" ;;
    PreToolUse) note="uses $(tool)" ;;
    PostToolUse) note="used $(tool)" ;;
    Notification) note="waits for somebody" ;;
    SubagentStop) note="has heard from a helper" ;;
    PreCompact) note="sums up what was said" ;;
    Stop) note="has answered" ;;
    *) exit 0 ;;
esac

printf '{"note":"%s"}' "$note" | stafette emit REPORT - >/dev/null 2>&1
exit 0

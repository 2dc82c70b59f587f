# Runs checks in the test machine, for scripts that read this file. The output is that of check.c.

passed=0
failed=0

# Seconds since the machine booted.
now() {
    read -r since rest </proc/uptime
    echo "${since%.*}"
}

# Runs a check, a function of that name; if it fails, its output is the reason.
check() {
    echo "# begins $1"
    start=$(now)
    if "$1" >/tmp/said 2>&1; then
        echo "ok $((passed + failed + 1)) $1"
        passed=$((passed + 1))
    else
        echo "not ok $((passed + failed + 1)) $1 # $(tail -n 12 /tmp/said | tr '\r\n' '  ')"
        failed=$((failed + 1))
    fi
    echo "# took $(($(now) - start)) s"
}

# Runs the checks of these names, in order.
run_checks() {
    echo "TAP version 13"
    echo "1..$#"
    for name; do
        check "$name"
    done
    echo "# Totals: pass:$passed fail:$failed xfail:0 xpass:0 skip:0 error:0"
    [ "$failed" = 0 ]
}

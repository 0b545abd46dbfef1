/**
 * Shell: waits for a file that `touch` makes by exec, and for that touch to have exited: the exit of the container's first
 * process kills what exec runs in it, and exec then answers 137.
 */
export const untilTouched = (path: string): string =>
  `while [ ! -e ${path} ] || pidof touch > /dev/null; do sleep 0.05; done`;

// The commands that the demo runs in a container with exec, and what their output has to show. With `ip` and
// `ps` where the image has them, as the one that the lab builds has; the nginx of Docker Hub has neither, and its shell
// reads /proc instead. Pure.

const sh = (script: string): readonly string[] => ['sh', '-c', script];

/** A command for the container, and what it is called in a check. */
export interface View {
  readonly title: string;
  readonly command: readonly string[];
}

export const INTERFACES: View = {
  title: 'exec "ip addr" shows the pod’s own interfaces',
  command: sh(
    'if command -v ip >/dev/null; then exec ip addr; fi; ' +
      'echo "this image has no ip: reading /proc/net"; cat /proc/net/dev; grep -B1 "host LOCAL" /proc/net/fib_trie',
  ),
};

export const PROCESSES: View = {
  title: 'exec "ps" shows only the pod',
  command: sh(
    'if command -v ps >/dev/null; then ps -e; exit; fi; echo "this image has no ps: reading /proc"; ' +
      'cd /proc; for p in [0-9]*; do echo "$p $(tr "\\0" " " <"$p/cmdline")"; done',
  ),
};

/** Whether interfaces with that address are shown, and none of a node's: a pod has lo and eth0. */
export function showsInterfaces(output: string, ip: string): boolean {
  const address = ip.replaceAll('.', '\\.');
  return new RegExp(`(^|[ /])${address}(/|$)`, 'm').test(output) && /\beth0\b/.test(output) && !/\bveth/.test(output);
}

export function showsProcesses(output: string): boolean {
  return /nginx/.test(output) && !/containerd/.test(output);
}

// The names of sysctls, shared by admission and the sandbox config. Pure.

/**
 * The name with dots between its parts. Where the first separator is a slash, slashes are the separators and a dot is
 * part of a name ("net/ipv4/conf/eth0.1/forwarding"), as sysctl(8) has it.
 */
export function normalizeSysctl(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  if (first !== '/') return name;
  return name.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));
}

// Whether an image belongs to a pattern of registries ("*.dkr.ecr.*.amazonaws.com", "registry:5000/team"): every part of
// the host by itself, the port exactly, the path by its beginning. Pure; the kubelet's URLsMatch.

interface Parts {
  readonly host: readonly string[];
  readonly port: string | undefined;
  readonly path: string;
}

function partsOf(text: string): Parts {
  const bare = text.replace(/^https?:\/\//, '');
  const slash = bare.indexOf('/');
  const authority = slash < 0 ? bare : bare.slice(0, slash);
  const colon = authority.lastIndexOf(':');
  return {
    host: (colon < 0 ? authority : authority.slice(0, colon)).split('.'),
    port: colon < 0 ? undefined : authority.slice(colon + 1),
    path: slash < 0 ? '' : bare.slice(slash),
  };
}

/** One part of a host against a glob that stays within it. */
function partMatches(glob: string, part: string): boolean {
  const expression = glob
    .replace(/[\\^$+.()|{}]/g, '\\$&')
    .replaceAll('*', '[^/]*')
    .replaceAll('?', '[^/]');
  return new RegExp(`^${expression}$`).test(part);
}

export function imageMatches(pattern: string, image: string): boolean {
  const [glob, target] = [partsOf(pattern), partsOf(image)];
  return (
    glob.port === target.port &&
    glob.host.length === target.host.length &&
    target.path.startsWith(glob.path) &&
    glob.host.every((part, index) => partMatches(part, target.host[index] ?? ''))
  );
}

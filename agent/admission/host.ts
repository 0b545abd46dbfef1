// What admission has to know of the kernel, read once at start.

import { readFileIfExists } from '../../lib/atomic.ts';

/** Whether the kernel enforces AppArmor profiles and a policy can be loaded. */
export async function appArmorEnabled(): Promise<boolean> {
  const [enabled, profiles] = await Promise.all([
    readFileIfExists('/sys/module/apparmor/parameters/enabled'),
    readFileIfExists('/sys/kernel/security/apparmor/.access').then(
      (text) => text !== undefined,
      // There, and not for reading.
      () => true,
    ),
  ]);
  return enabled?.startsWith('Y') === true && profiles;
}

// AlwaysAdmit and AlwaysDeny, which decide without looking (plugin/pkg/admission/admit, deny). Upstream has deprecated both.

import { type AdmissionAttributes, AdmissionForbidden, type AdmissionPlugin } from '../plugin.ts';

export const alwaysAdmit: AdmissionPlugin = { name: 'AlwaysAdmit', handles: () => false };

/** What the server makes at its start has to be there. */
function deny({ internal }: AdmissionAttributes): void {
  if (!internal) throw new AdmissionForbidden('admission control is denying all modifications');
}

export const alwaysDeny: AdmissionPlugin = { name: 'AlwaysDeny', handles: () => true, admit: deny, validate: deny };

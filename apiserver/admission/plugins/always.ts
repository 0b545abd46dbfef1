// AlwaysAdmit and AlwaysDeny, which decide without looking (plugin/pkg/admission/admit, deny). Upstream has deprecated both.

import { AdmissionForbidden, type AdmissionPlugin } from '../plugin.ts';

export const alwaysAdmit: AdmissionPlugin = { name: 'AlwaysAdmit', handles: () => false };

function deny(): never {
  throw new AdmissionForbidden('admission control is denying all modifications');
}

export const alwaysDeny: AdmissionPlugin = { name: 'AlwaysDeny', handles: () => true, admit: deny, validate: deny };

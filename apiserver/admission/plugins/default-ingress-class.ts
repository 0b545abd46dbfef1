// DefaultIngressClass: an Ingress that names no class gets the default one; several of them are a mistake that is refused
// (plugin/pkg/admission/network/defaultingressclass).

import type { Ingress } from 'kubernetes-types/networking/v1';
import { getOwn } from '../../../lib/own-property.ts';
import { as } from '../../kinds/shapes.ts';
import { AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../plugin.ts';

const GROUP = 'networking.k8s.io';
/** The annotation that preceded the field. */
const CLASS_ANNOTATION = 'kubernetes.io/ingress.class';
const IS_DEFAULT = 'ingressclass.kubernetes.io/is-default-class';

export const defaultIngressClass: AdmissionPlugin = {
  name: 'DefaultIngressClass',
  handles: handlesOnly(GROUP, 'ingresses', 'CREATE'),
  admit: ({ object }, lookup) => {
    if (object === undefined) return;
    const ingress = as<Ingress>(object, 'Ingress');
    const { annotations } = ingress.metadata;
    if (ingress.spec?.ingressClassName !== undefined || getOwn(annotations, CLASS_ANNOTATION) !== undefined) return;
    const defaults = lookup
      .list(GROUP, 'ingressclasses')
      .filter(({ metadata }) => getOwn(metadata.annotations, IS_DEFAULT) === 'true');
    if (defaults.length > 1) {
      throw new AdmissionForbidden(
        `Internal error occurred: ${defaults.length} default IngressClasses were found, only 1 allowed`,
      );
    }
    const name = defaults[0]?.metadata.name;
    if (name !== undefined) ingress.spec = { ...ingress.spec, ingressClassName: name };
  },
};

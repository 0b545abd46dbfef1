// AlwaysPullImages: every image is pulled at each start, so that only who may pull it can run it
// (plugin/pkg/admission/alwayspullimages).

import { notSupported } from '../../kinds/field-errors.ts';
import { type Pod, podOf } from '../../kinds/shapes.ts';
import { type AdmissionAttributes, AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../plugin.ts';

const LISTS = ['initContainers', 'containers', 'ephemeralContainers'] as const;

/** Whatever has an image and a pull policy, with its path. */
function imagesOf({ spec }: Pod) {
  const containers = LISTS.flatMap((list) =>
    (spec?.[list] ?? []).map((container, index) => ({
      path: `spec.${list}[${index}].imagePullPolicy`,
      image: container.image,
      policy: container.imagePullPolicy,
      set: () => {
        container.imagePullPolicy = 'Always';
      },
    })),
  );
  const volumes = (spec?.volumes ?? []).flatMap(({ image }, index) =>
    image === undefined
      ? []
      : [
          {
            path: `spec.volumes[${index}].image.pullPolicy`,
            image: image.reference,
            policy: image.pullPolicy,
            set: () => {
              image.pullPolicy = 'Always';
            },
          },
        ],
  );
  return [...containers, ...volumes];
}

/** Updates without a new image are left alone: what runs, runs. */
function concerned({ object, old, operation }: AdmissionAttributes): ReturnType<typeof imagesOf> {
  if (object === undefined) return [];
  const images = imagesOf(podOf(object));
  if (operation !== 'UPDATE' || old === undefined) return images;
  const before = new Set(imagesOf(podOf(old)).map(({ image }) => image));
  return images.every(({ image }) => before.has(image)) ? [] : images;
}

export const alwaysPullImages: AdmissionPlugin = {
  name: 'AlwaysPullImages',
  handles: handlesOnly('', 'pods', 'CREATE', 'UPDATE'),
  admit: (attributes) => {
    for (const { set } of concerned(attributes)) set();
  },
  validate: (attributes) => {
    const other = concerned(attributes).find(({ policy }) => policy !== 'Always');
    if (other === undefined) return;
    const { field, detail } = notSupported(other.path, other.policy, ['Always']);
    throw new AdmissionForbidden(`${field}: ${detail}`);
  },
};

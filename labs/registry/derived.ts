// Images of the repositories private/…, slow/… and limited/…: the lab's own under another name. Each has a manifest of its own, so that a runtime
// that has the image fetches it all the same; the slow ones have one more layer. Pure.

import type { ArchivedImage } from './archive.ts';
import { type Content, descriptorOf, jsonContent, type Manifest } from './content.ts';

export interface DerivedImage {
  readonly manifest: Content;
  readonly config: Content;
  readonly layers: readonly Content[];
}

interface Config {
  readonly rootfs: { readonly type: string; readonly diff_ids: readonly string[] };
  readonly history?: readonly object[];
}

/** `name`: "private/busybox:stable". `more`: a layer without compression on top of the image's. */
export function deriveImage(image: ArchivedImage, name: string, more?: Content): DerivedImage {
  const layers = more === undefined ? image.layers : [...image.layers, more];
  const own = more === undefined ? image.config : withLayer(image.config.mediaType, image.configData, more);
  const manifest: Manifest = {
    ...image.parsed,
    config: descriptorOf(own),
    layers: layers.map(descriptorOf),
    annotations: { ...image.parsed.annotations, 'org.opencontainers.image.ref.name': name },
  };
  return { manifest: jsonContent(manifest.mediaType, manifest), config: own, layers };
}

function withLayer(mediaType: string, data: Buffer, layer: Content): Content {
  const config: Config = JSON.parse(data.toString('utf8'));
  return jsonContent(mediaType, {
    ...config,
    rootfs: { ...config.rootfs, diff_ids: [...config.rootfs.diff_ids, layer.digest] },
    ...(config.history === undefined
      ? {}
      : { history: [...config.history, { created_by: 'nodelet labs/registry: padding' }] }),
  });
}

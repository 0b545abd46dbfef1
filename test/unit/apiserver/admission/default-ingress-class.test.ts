import { describe, expect, it } from 'vitest';
import { at } from '../../../support/api-server.ts';
import { create, lookupOf, row } from '../kinds/support.ts';

const ingresses = row('ingresses', 'networking.k8s.io');
const ingressClass = (name: string, isDefault: boolean) => ({
  group: 'networking.k8s.io',
  plural: 'ingressclasses',
  object: {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IngressClass',
    metadata: { name, annotations: { 'ingressclass.kubernetes.io/is-default-class': String(isDefault) } },
  },
});
const spec = { defaultBackend: { service: { name: 'web', port: { number: 80 } } } };
const className = (fields: object, ...classes: ReturnType<typeof ingressClass>[]): unknown =>
  at(create(ingresses, { spec, ...fields }, lookupOf(...classes)).object, 'spec', 'ingressClassName');

describe('an Ingress without a class', () => {
  it('gets the default one, if there is one', () => {
    expect(className({}, ingressClass('other', false), ingressClass('usual', true))).toBe('usual');
    expect(className({}, ingressClass('other', false))).toBeUndefined();
  });

  it('keeps what it has', () => {
    expect(className({ spec: { ...spec, ingressClassName: 'own' } }, ingressClass('usual', true))).toBe('own');
    const metadata = { annotations: { 'kubernetes.io/ingress.class': 'own' } };
    expect(className({ metadata }, ingressClass('usual', true))).toBeUndefined();
  });

  it('is refused where several are the default', () => {
    expect(() => className({}, ingressClass('a', true), ingressClass('b', true))).toThrow(
      'ingresses.networking.k8s.io "web" is forbidden: Internal error occurred: 2 default IngressClasses were found, only 1 allowed',
    );
  });
});

import { Type } from '@sinclair/typebox'
import { reloading, section, whole } from '#config/keys.ts'

const hosts = (description: string, fallback: string[]) =>
  Type.Array(Type.String({ minLength: 1 }), { description, default: fallback })

/** The keys of webhooks. */
export const webhooksKeys = {
  webhooks: reloading(
    section('Webhooks: events of background work that are sent to addresses of users.', {
      hosts: hosts(
        'Hosts that users may name: "hooks.example.com", "*.example.com" or "*". They need a public address and https.',
        ['*'],
      ),
      ports: Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), {
        description: 'Allowed ports of such hosts; empty: any.',
        default: [443],
      }),
      privateHosts: hosts(
        'Hosts that may have a private address, any port and plain http. Addresses of cloud metadata services are always refused.',
        [],
      ),
      perOwnerMax: whole('Endpoints per user, and of the organisation.', {
        default: 20,
        minimum: 1,
        maximum: 1_000,
      }),
      attemptMs: whole('Timeout of an attempt.', { default: 15_000, minimum: 10 }),
      ageMaxS: whole('How long after its event a delivery is repeated.', {
        default: 259_200,
        minimum: 1,
        maximum: 2_592_000,
      }),
      keepDays: whole('How long ended deliveries are listed.', {
        default: 30,
        minimum: 1,
        maximum: 36_500,
      }),
    }),
  ),
}

import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import type { UserNames } from '#directory/name-store.ts'
import type { CollectTraffic } from './link.ts'
import { mergeTraffic } from './merge.ts'
import { renderTraffic, trafficExample, trafficRecord } from './record.ts'

export type TrafficEndpointDeps = {
  readonly collectTraffic: CollectTraffic
  readonly userNames: UserNames
  readonly now: () => Date
}

/** What all workers of this machine do now. */
export function trafficEndpoints({
  collectTraffic,
  userNames,
  now,
}: TrafficEndpointDeps): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/traffic',
      permission: 'can_manage_models',
      tag: 'Upstreams',
      summary: 'Retrieve the present traffic',
      description: `Running generations, queues and upstreams of all workers of the machine that responds; other
replicas have their own. Contents are not included. Concurrent requests share one round of reports, so
polling once or twice a second is cheap.`,
      responses: {
        200: { description: 'The traffic.', content: json(trafficRecord, trafficExample) },
      },
      async handle() {
        const traffic = mergeTraffic(await collectTraffic())
        const names = await userNames(traffic.calls.map(({ userId }) => userId))
        return renderTraffic(traffic, { at: now(), names })
      },
    }),
  ]
}

import { createUserNames } from '#directory/name-store.ts'
import type { Inference } from '#inference/inference.ts'
import type { Router } from '#inference/routing/router.ts'
import type { Catalogue } from '#models/catalogue.ts'
import type { Drains } from '#models/drains.ts'
import { createUpstreamReport } from '#models/upstream-report.ts'
import { type Foundation, module } from '#module.ts'
import { trafficEndpoints } from './endpoints.ts'
import { connectTraffic } from './link.ts'
import { type ReportDeps, reportTraffic } from './report.ts'

/** The present traffic of all workers of this machine. */
export const trafficModule = module({
  name: 'traffic',
  start({
    trafficChannel,
    inference,
    waitingCalls,
    sockets,
    ...needs
  }: Foundation & {
    inference: Inference
    waitingCalls: ReportDeps['waitingCalls']
    sockets: ReportDeps['sockets']
    router: Router
    catalogue: Catalogue
    drains: Drains
  }) {
    const upstreams = createUpstreamReport(needs).all
    const collectTraffic = connectTraffic(trafficChannel, () =>
      reportTraffic({ inference, waitingCalls, sockets, upstreams }),
    )
    return { services: { collectTraffic, userNames: createUserNames(needs.database) } }
  },
  endpoints: trafficEndpoints,
})

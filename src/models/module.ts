import type { CallableAgents } from '#agents/callable-agents.ts'
import type { Audit } from '#audit/store.ts'
import type { Generate } from '#inference/inference.ts'
import { callMetrics, genAiMetrics, keyMetrics, queueMetrics } from '#inference/metrics.ts'
import type { Limits } from '#limits/admission.ts'
import { type Foundation, module } from '#module.ts'
import type { Ledger } from '#usage/ledger.ts'
import { startCallPath } from './call-path.ts'
import { upstreams as upstreamChecks } from './doctor.ts'
import { createDrains } from './drains.ts'
import { modelEndpoints } from './endpoints.ts'
import { routingMetrics } from './metrics.ts'
import type { ModelResolver } from './model-resolver.ts'
import { type UpstreamEndpointDeps, upstreamEndpoints } from './upstream-endpoints.ts'

/** The models of requests, their upstreams, and the path to them. */
export const modelsModule = module({
  name: 'models',
  tags: {
    Models: 'The model list, embeddings, reranking and token counts.',
    Upstreams: 'State and load of the inference servers behind the gateway.',
  },
  doctor: upstreamChecks,
  metrics: [genAiMetrics, callMetrics, queueMetrics, routingMetrics, keyMetrics],
  async start(
    needs: Foundation & {
      audit: Audit
      callableAgents: CallableAgents
      guardGenerate: (generate: Generate) => Generate
      limits: Limits
      usageLedger: Ledger | null
    },
  ) {
    const { guardGenerate, limits, settings } = needs
    const callPath = startCallPath({
      ...needs,
      admit: limits.admit,
      accessRules: () => settings.current().models.access,
    })
    const drains = await createDrains({ ...needs, router: callPath.services.router })
    const { inference } = callPath.services
    return {
      services: {
        ...callPath.services,
        inference: { ...inference, generate: guardGenerate(inference.generate) },
        drains,
      },
      reload: (next) => () => callPath.reload(next),
      async close() {
        await drains.close()
        await callPath.close()
      },
    }
  },
  endpoints: ({
    builtInEmbedders,
    speechModels,
    ...needs
  }: UpstreamEndpointDeps & {
    modelResolver: ModelResolver
    builtInEmbedders: readonly string[]
    speechModels: () => readonly string[]
  }) => [
    ...modelEndpoints({
      modelResolver: needs.modelResolver,
      builtInEmbedders,
      speechModels,
    }),
    ...upstreamEndpoints(needs),
  ],
})

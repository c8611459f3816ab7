import type { Inference } from '#inference/inference.ts'
import type { Limits } from '#limits/admission.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import { type Foundation, module } from '#module.ts'
import { speakingEndpoints } from './endpoints.ts'

/** Text to speech, by upstreams that speak. */
export const speakingModule = module({
  name: 'speaking',
  endpoints: (
    services: Foundation & { inference: Inference; limits: Limits; modelResolver: ModelResolver },
  ) => speakingEndpoints(services),
})

import type { EngineConfig } from '#config/schema.ts'
import type { Engine } from '#speech/engine.ts'
import { createDeepgramEngine } from './deepgram.ts'
import { createDemoEngine } from './demo.ts'
import type { EngineDeps } from './engine-deps.ts'
import { createExecEngine } from './exec/engine.ts'
import { createOpenAiRealtimeEngine } from './openai-realtime/engine.ts'
import { createVoskEngine } from './vosk.ts'

type EngineFactory = (config: EngineConfig, deps: EngineDeps) => Engine

const factories: Readonly<Record<EngineConfig['kind'], EngineFactory>> = {
  exec: createExecEngine,
  vosk: createVoskEngine,
  'openai-realtime': createOpenAiRealtimeEngine,
  deepgram: createDeepgramEngine,
  demo: createDemoEngine,
}

export function createEngine(config: EngineConfig, deps: EngineDeps): Engine {
  return factories[config.kind](config, deps)
}

import type { Adapter, UpstreamKind } from '#inference/upstream.ts'
import { chatCompletions } from './chat-completions/adapter.ts'
import { demo } from './demo.ts'
import { messages } from './messages/adapter.ts'
import { responses } from './responses/adapter.ts'

/** Every upstream protocol that we speak. What runs models here has a lifetime, so it is made apart. */
export const adapters = {
  chat: chatCompletions,
  responses,
  messages,
  demo,
} satisfies Record<Exclude<UpstreamKind, 'llama'>, Adapter>

import { askCounter, readCount } from '#inference/ask-counter.ts'
import { mediaTokens } from '#inference/media-tokens.ts'
import type { ContentPart, GenerationRequest, RequestItem } from '#inference/request.ts'
import { createToolNames } from '#inference/tool-names.ts'
import type { AdapterContext } from '#inference/upstream.ts'
import { encodeChatRequest } from './encode.ts'

/**
 * The protocol has no counter, but servers have: they put a prompt together as for an answer and
 * say how many tokens it has. Images and files are left out and counted as everywhere, because no
 * server counts them without looking at them.
 */
export async function countTokens(
  request: GenerationRequest,
  context: AdapterContext,
): Promise<number | null> {
  const ask = counters[context.upstream.quirks.tokenCounter]
  if (ask === null) return null
  const media = takeMedia(request)
  const counted = await ask(promptOf(media.request, context), context)
  return counted === null ? null : counted + Math.ceil(media.tokens)
}

type AskCounter = (prompt: ChatPrompt, context: AdapterContext) => Promise<number | null>

const counters: Readonly<
  Record<AdapterContext['upstream']['quirks']['tokenCounter'], AskCounter | null>
> = { vllm: askVllm, 'llama.cpp': askLlamaCpp, native: null, none: null }

type ChatPrompt = { readonly [field: string]: unknown }

/** Of the body of a chat request only what the prompt is made of. */
function promptOf(request: GenerationRequest, { upstream, model }: AdapterContext): ChatPrompt {
  const { quirks } = upstream
  const toolNames = createToolNames(request)
  const body = encodeChatRequest(request, { model, quirks, toolNames })
  const names = ['model', 'messages', 'tools', 'chat_template_kwargs']
  return Object.fromEntries(names.map((name) => [name, body[name]]))
}

async function askVllm(prompt: ChatPrompt, context: AdapterContext): Promise<number | null> {
  const body = { ...prompt, add_generation_prompt: true }
  const answer = await askCounter(context, { url: `${rootOf(context)}/tokenize`, body })
  return answer === null ? null : readCount(answer['count'])
}

async function askLlamaCpp(prompt: ChatPrompt, context: AdapterContext): Promise<number | null> {
  const root = rootOf(context)
  const rendered = await askCounter(context, { url: `${root}/apply-template`, body: prompt })
  if (rendered === null) return null
  const body = { content: rendered['prompt'], add_special: true, parse_special: true }
  const answer = await askCounter(context, { url: `${root}/tokenize`, body })
  if (answer === null) return null
  const tokens = answer['tokens']
  return typeof rendered['prompt'] === 'string' && Array.isArray(tokens)
    ? tokens.length
    : Number.NaN
}

/** These stand beside the versioned paths, not below them. */
function rootOf({ upstream }: AdapterContext): string {
  return upstream.baseUrl.replace(/\/v1$/, '')
}

type TakenMedia = { readonly request: GenerationRequest; readonly tokens: number }

function takeMedia(request: GenerationRequest): TakenMedia {
  let tokens = 0
  const keepTexts = (parts: readonly ContentPart[]) =>
    parts.filter((part) => {
      if ('text' in part) return true
      tokens += mediaTokens(part)
      return false
    })
  const items: RequestItem[] = request.items.map((item) =>
    'parts' in item ? { ...item, parts: keepTexts(item.parts) } : item,
  )
  return { request: { ...request, items }, tokens }
}

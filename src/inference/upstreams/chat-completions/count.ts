import type { ContentPart, GenerationRequest, RequestItem } from '#inference/request.ts'
import { mediaTokens } from '#inference/token-estimate.ts'
import { createToolNames } from '#inference/tools.ts'
import type { AdapterContext } from '#inference/upstream.ts'
import { targetName } from '#inference/upstream-fields.ts'
import { postToCounter, readCount } from '#inference/upstream-http.ts'
import { encodeChatRequest } from './encode.ts'

/**
 * The protocol defines no token counter, but servers have their own: they render the prompt and
 * return its token count. Images and files are estimated by Sluice, since no server counts them
 * without processing them.
 */
export async function countTokens(
  request: GenerationRequest,
  context: AdapterContext,
): Promise<number | null> {
  const count = counters[context.upstream.quirks.tokenCounter]
  if (count === null) return null
  const media = splitMedia(request)
  const counted = await count(encodePrompt(media.request, context), context)
  return counted === null ? null : counted + Math.ceil(media.tokens)
}

type CountPrompt = (prompt: ChatPrompt, context: AdapterContext) => Promise<number | null>

const counters: Readonly<
  Record<AdapterContext['upstream']['quirks']['tokenCounter'], CountPrompt | null>
> = { vllm: countWithVllm, 'llama.cpp': countWithLlamaCpp, native: null, none: null }

type ChatPrompt = { readonly [field: string]: unknown }

/** The fields of a chat request that determine the prompt. */
function encodePrompt(request: GenerationRequest, context: AdapterContext): ChatPrompt {
  const { upstream, model } = context
  const { quirks } = upstream
  const toolNames = createToolNames(request)
  const body = encodeChatRequest(request, {
    model,
    targetName: targetName(context),
    quirks,
    toolNames,
  })
  const names = ['model', 'messages', 'tools', 'chat_template_kwargs']
  return Object.fromEntries(names.map((name) => [name, body[name]]))
}

async function countWithVllm(prompt: ChatPrompt, context: AdapterContext): Promise<number | null> {
  const body = { ...prompt, add_generation_prompt: true }
  const response = await postToCounter(context, { url: `${rootOf(context)}/tokenize`, body })
  return response === null ? null : readCount(response['count'])
}

async function countWithLlamaCpp(
  prompt: ChatPrompt,
  context: AdapterContext,
): Promise<number | null> {
  const root = rootOf(context)
  const rendered = await postToCounter(context, { url: `${root}/apply-template`, body: prompt })
  if (rendered === null) return null
  const body = { content: rendered['prompt'], add_special: true, parse_special: true }
  const response = await postToCounter(context, { url: `${root}/tokenize`, body })
  if (response === null) return null
  const tokens = response['tokens']
  return typeof rendered['prompt'] === 'string' && Array.isArray(tokens)
    ? tokens.length
    : Number.NaN
}

/** The counters are not below the versioned path. */
function rootOf({ upstream }: AdapterContext): string {
  return upstream.baseUrl.replace(/\/v1$/, '')
}

/** The request without images and files, and their estimated tokens. */
function splitMedia(request: GenerationRequest): { request: GenerationRequest; tokens: number } {
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

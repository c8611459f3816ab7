type OperationPlace = {
  /** In lower case. */
  readonly method: string
  /** As the document writes it: `/v1/files/{file_id}/shares`. */
  readonly path: string
  readonly isSocket: boolean
}

/** Last path segments of POST endpoints that name an action. */
const actions = new Set([
  ...['accept', 'cancel', 'compact', 'copy', 'move', 'pause', 'preview', 'reindex', 'reprocess'],
  ...['rerank', 'reset', 'restore', 'resume', 'retry', 'revert', 'rollback', 'search', 'verify'],
])

const verbs: Readonly<Record<string, string>> = {
  delete: 'delete',
  get: 'get',
  head: 'head',
  patch: 'update',
  post: 'update',
  put: 'replace',
}

/** Paths for which the rule below gives a misleading name. */
const exceptions: Readonly<Record<string, string>> = {
  'get /v1/embeddings/reindex': 'listEmbeddingsReindexes',
  'post /v1/branding/logo': 'uploadBrandingLogo',
  'post /v1/session': 'logIn',
  'delete /v1/session': 'logOut',
  'post /v1/files/children': 'queryFilesChildren',
  'post /v1/responses/input_tokens': 'countResponseInputTokens',
  'post /compat/v1/messages/count_tokens': 'countCompatMessageTokens',
}

/**
 * The id of an operation, derived from its method and path alone: `listApiKeys`, `getApiKey`,
 * `cancelResponse`. Outside of /v1 and /compat/v1 it is the method and all words of the path.
 */
export function operationId({ method, path, isSocket }: OperationPlace): string {
  const exception = exceptions[`${method} ${path}`]
  if (exception !== undefined) return exception
  const main = /^\/(?:(compat)\/)?v1\/(?!v1\/)(.+)$/.exec(path)
  if (main === null) return camelCase([method, ...(path === '/' ? ['root'] : path.split('/'))])
  const [, surface = '', rest = ''] = main
  const steps = rest.split('/')
  const words = steps.flatMap((step, at) => {
    // The second of two consecutive parameters is part of the name.
    if (isParameter(step)) return isParameter(steps[at - 1]) ? [step] : []
    return [isParameter(steps[at + 1]) ? singular(step) : step]
  })
  const last = steps.at(-1) ?? ''
  const parents = [surface, ...words.slice(0, -1)]
  if (isSocket) return camelCase(['connect', surface, ...words])
  if (isParameter(last)) return camelCase([verbs[method] ?? method, surface, ...words])
  if (method === 'get') return camelCase([isPlural(last) ? 'list' : 'get', ...parents, last])
  if (method !== 'post') return camelCase([verbs[method] ?? method, ...parents, last])
  if (actions.has(last)) return camelCase([last, ...parents])
  return isPlural(last)
    ? camelCase(['create', ...parents, singular(last)])
    : camelCase(['post', ...parents, last])
}

function isParameter(step: string | undefined): boolean {
  return step?.startsWith('{') === true
}

function isPlural(word: string): boolean {
  return singular(word) !== word
}

/** `api-keys` → `api-key`. `tokens` stays: it is a count, not a list. */
export function singular(word: string): string {
  if (/(us|ss|tokens)$/.test(word)) return word
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  return /(ch|sh|x)es$/.test(word) ? word.slice(0, -2) : word.replace(/s$/, '')
}

function camelCase(parts: readonly string[]): string {
  const name = pascalCase(parts)
  const [first = ''] = parts
  return first.slice(0, 1) + name.slice(1)
}

export function pascalCase(parts: readonly string[]): string {
  const words = parts.flatMap((part) => part.split(/[^A-Za-z0-9]+/))
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

import { singular } from './operation-id.ts'

/** Resources that are addressed by name as well as by id. */
const namedResources = new Set(['collections'])

/**
 * A path of an endpoint in the document: without a trailing slash, and with parameters that tell what
 * they identify: `/v1/files/:id/shares/:shareId` → `/v1/files/{file_id}/shares/{share_id}`.
 */
export function documentPath(path: string): string {
  const plain = path.length > 1 ? path.replace(/\/$/, '') : path
  const steps = plain.split('/')
  return steps
    .map((step, at) => {
      const parameter = step === '*' ? step : /^:(.+)/.exec(step)?.[1]
      return parameter === undefined ? step : `{${documentName(parameter, steps[at - 1] ?? '')}}`
    })
    .join('/')
}

/** The names of the parameters by those of the declaration. */
export function parameterNames(path: string): ReadonlyMap<string, string> {
  const declared = [...path.matchAll(/:(\w+)|\*/g)].map(([all, name]) => name ?? all)
  const documented = [...documentPath(path).matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  return new Map(declared.map((name, at) => [name, documented[at] ?? name]))
}

function documentName(parameter: string, resource: string): string {
  // The name of a model, which may contain slashes.
  if (parameter === '*') return 'name'
  if (parameter !== 'id') return parameter.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return namedResources.has(resource) ? 'name' : `${singular(resource).replace(/-/g, '_')}_id`
}

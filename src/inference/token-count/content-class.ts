/** Kinds of text that tokenizers disagree about in ways of their own. */
export type ContentClass = 'prose' | 'code' | 'script'

/** Tokens by what they were counted from; `template` is what stands around the texts. */
export type ClassTokens = Record<ContentClass | 'template', number>

/** The beginning of a text is enough to tell what it is. */
const sampleChars = 400
/** Prose has a mark or a digit in every twentieth place, code and JSON in every fifth. */
const codeShareMin = 0.12
const scriptShareMin = 0.2

/** Words of the Latin alphabet; code, JSON and tables; other scripts. */
export function classOf(text: string): ContentClass {
  const chars = Math.min(text.length, sampleChars)
  let marks = 0
  let foreign = 0
  for (let at = 0; at < chars; at++) {
    const code = text.charCodeAt(at)
    const lower = code | 0x20
    if (code >= 0x250) foreign++
    else if (code > 0x20 && code < 0x80 && !(lower >= 0x61 && lower <= 0x7a)) marks++
  }
  if (foreign > chars * scriptShareMin) return 'script'
  return marks > chars * codeShareMin ? 'code' : 'prose'
}

export function noTokens(): ClassTokens {
  return { prose: 0, code: 0, script: 0, template: 0 }
}

export function sumOf({ prose, code, script, template }: ClassTokens): number {
  return prose + code + script + template
}

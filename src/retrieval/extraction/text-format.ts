/** What a file without a format of its own is taken for, which its bytes alone do not say. */
export type TextFormat = 'html' | 'svg' | 'text' | 'unknown'

const byExtension: Readonly<Record<string, TextFormat>> = {
  htm: 'html',
  html: 'html',
  xhtml: 'html',
  svg: 'svg',
}

/** By the name; the type that somebody gave is heard only where the name says nothing. */
export function textFormatOf(name: string, mimeType: string): TextFormat {
  const extension = /\.([a-z0-9]{1,16})$/i.exec(name)?.[1]?.toLowerCase()
  if (extension !== undefined) return byExtension[extension] ?? 'text'
  if (/^(text\/html|application\/xhtml\+xml)\b/i.test(mimeType)) return 'html'
  return /^image\/svg/i.test(mimeType) ? 'svg' : 'unknown'
}

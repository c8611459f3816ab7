import type { ComponentChildren } from 'preact'
import { CodeBlock } from './code.tsx'

/**
 * The Markdown that models write: fences, headings, lists, quotes, emphasis, links. Everything else is
 * shown as text; nothing is ever parsed as HTML.
 */
export function RichText({ text }: { text: string }) {
  return (
    <div class="rich">
      {splitFences(text).map((block, at) =>
        block.isCode ? (
          <CodeBlock key={at} code={block.text} label={block.language || 'Code'} />
        ) : (
          <Prose key={at} text={block.text} />
        ),
      )}
    </div>
  )
}

type Block = { readonly isCode: boolean; readonly language: string; readonly text: string }

/** An open fence at the end is code that is still being written. */
function splitFences(text: string): Block[] {
  return text.split(/^```/m).flatMap((piece, at): Block[] => {
    if (at % 2 === 0)
      return piece.trim() === '' ? [] : [{ isCode: false, language: '', text: piece }]
    const end = piece.indexOf('\n')
    const language = end === -1 ? piece.trim() : piece.slice(0, end).trim()
    const code = end === -1 ? '' : piece.slice(end + 1).trimEnd()
    return [{ isCode: true, language, text: code }]
  })
}

function Prose({ text }: { text: string }) {
  return (
    <>
      {text
        .trim()
        .split(/\n{2,}/)
        .map((paragraph, at) => renderParagraph(paragraph, at))}
    </>
  )
}

function renderParagraph(paragraph: string, key: number): ComponentChildren {
  const heading = /^(#{1,6})\s+(.*)$/.exec(paragraph)
  if (heading !== null) return <h3 key={key}>{renderInline(heading[2] ?? '')}</h3>
  const lines = paragraph.split('\n')
  if (lines.every((line) => /^\s*([-*+]|\d+[.)])\s/.test(line))) {
    const items = lines.map((line, at) => (
      <li key={at}>{renderInline(line.replace(/^\s*([-*+]|\d+[.)])\s/, ''))}</li>
    ))
    return /^\s*\d/.test(paragraph) ? <ol key={key}>{items}</ol> : <ul key={key}>{items}</ul>
  }
  if (lines.every((line) => line.startsWith('>'))) {
    return (
      <blockquote key={key}>
        {renderInline(lines.map((line) => line.replace(/^>\s?/, '')).join('\n'))}
      </blockquote>
    )
  }
  return <p key={key}>{renderInline(paragraph)}</p>
}

const inline = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\*[^*\s][^*\n]*\*|\[[^\]\n]+\]\(https?:[^)\s]+\))/

function renderInline(text: string): ComponentChildren[] {
  return text.split(inline).map((piece, at) => {
    if (piece.startsWith('`') && piece.length > 2) return <code key={at}>{piece.slice(1, -1)}</code>
    if (piece.startsWith('**') && piece.length > 4) {
      return <strong key={at}>{piece.slice(2, -2)}</strong>
    }
    if (piece.startsWith('*') && piece.length > 2) return <em key={at}>{piece.slice(1, -1)}</em>
    const link = /^\[([^\]]+)\]\((https?:[^)\s]+)\)$/.exec(piece)
    if (link === null) return piece
    return (
      <a key={at} href={link[2] ?? ''} target="_blank" rel="noreferrer">
        {link[1]}
      </a>
    )
  })
}

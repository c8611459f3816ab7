import type { MarkedToken, Token } from 'marked'
import type { ComponentChildren } from 'preact'
import { CodeBlock } from './code.tsx'
import { blocksOf, decodeEntities } from './markdown.ts'

/**
 * The Markdown that models write. HTML in it is shown as text, and pictures as links: nothing that a model
 * writes is parsed as HTML or loaded.
 */
export function RichText({ text }: { text: string }) {
  const blocks = blocksOf(text)
  return <div class="rich">{blocks === null ? <p>{text}</p> : blocks.map(renderBlock)}</div>
}

const renderBlocks = (tokens: readonly Token[]) =>
  (tokens as readonly MarkedToken[]).map(renderBlock)

function renderBlock(block: MarkedToken, key: number): ComponentChildren {
  switch (block.type) {
    case 'space':
    case 'def':
      return null
    case 'code':
      return <CodeBlock key={key} code={block.text} label={block.lang || 'Code'} />
    case 'heading':
      return <h3 key={key}>{renderInline(block.tokens)}</h3>
    case 'hr':
      return <hr key={key} />
    case 'blockquote':
      return <blockquote key={key}>{renderBlocks(block.tokens)}</blockquote>
    case 'list':
      return renderList(block, key)
    case 'table':
      return renderTable(block, key)
    case 'text':
      return renderInline(block.tokens ?? [block])
    case 'html':
      return <p key={key}>{block.raw.trimEnd()}</p>
    default:
      return <p key={key}>{renderInline('tokens' in block ? (block.tokens ?? []) : [block])}</p>
  }
}

function renderList(list: Extract<MarkedToken, { type: 'list' }>, key: number) {
  const items = list.items.map((item, at) => <li key={at}>{renderBlocks(item.tokens)}</li>)
  if (!list.ordered) return <ul key={key}>{items}</ul>
  return (
    <ol key={key} start={Number(list.start) || 1}>
      {items}
    </ol>
  )
}

function renderTable(table: Extract<MarkedToken, { type: 'table' }>, key: number) {
  const cellsOf = (row: typeof table.header, Cell: 'th' | 'td') =>
    row.map(({ tokens, align }, at) => (
      <Cell key={at} class={align ?? ''}>
        {renderInline(tokens)}
      </Cell>
    ))
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <div key={key} class="rich-table" tabIndex={0}>
      <table>
        <thead>
          <tr>{cellsOf(table.header, 'th')}</tr>
        </thead>
        <tbody>
          {table.rows.map((row, at) => (
            <tr key={at}>{cellsOf(row, 'td')}</tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function renderInline(tokens: readonly Token[]): ComponentChildren[] {
  return (tokens as readonly MarkedToken[]).map((token, key) => {
    switch (token.type) {
      case 'strong':
        return <strong key={key}>{renderInline(token.tokens)}</strong>
      case 'em':
        return <em key={key}>{renderInline(token.tokens)}</em>
      case 'del':
        return <del key={key}>{renderInline(token.tokens)}</del>
      case 'codespan':
        return <code key={key}>{token.text}</code>
      case 'br':
        return <br key={key} />
      case 'checkbox':
        return token.checked ? '☑ ' : '☐ '
      case 'link':
        return renderLink(token.href, renderInline(token.tokens), key)
      case 'image':
        return renderLink(token.href, token.text || token.href, key)
      case 'html':
        return /^<br\s*\/?>$/i.test(token.raw) ? <br key={key} /> : token.raw
      case 'text':
        return token.tokens === undefined ? decodeEntities(token.text) : renderInline(token.tokens)
      default:
        return 'text' in token ? token.text : token.raw
    }
  })
}

/** Only addresses of the web: a model may write any other scheme. */
function renderLink(address: string, children: ComponentChildren, key: number) {
  if (!/^https?:\/\//i.test(address)) return children
  return (
    <a key={key} href={address} target="_blank" rel="noreferrer">
      {children}
    </a>
  )
}

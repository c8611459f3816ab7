/** Tricks that have worked somewhere, each with what is told to have been taken out. */

export type Trick = readonly [name: string, inside: string, sanitized: readonly string[]]

const xhtml = 'xmlns="http://www.w3.org/1999/xhtml"'

export const tricks: readonly Trick[] = [
  ['a script', '<script>alert(1)</script>', ['<script>']],
  ['a script in CDATA', '<script><![CDATA[alert(1)]]></script>', ['<script>']],
  ['a script from elsewhere', '<script href="https://evil.example/x.js"/>', ['<script>']],
  [
    'a script under a prefix',
    '<x:script xmlns:x="http://www.w3.org/2000/svg">alert(1)</x:script>',
    ['<x:script>'],
  ],
  ['a script of HTML', `<script ${xhtml}>alert(1)</script>`, ['<script>']],
  ['a script in other letters', '<SCRIPT>alert(1)</SCRIPT>', ['<SCRIPT>']],
  ['a handler', '<rect width="1" height="1" onclick="alert(1)"/>', ['onclick of <rect>']],
  ['a handler in other letters', '<rect OnLoad="alert(1)"/>', ['OnLoad of <rect>']],
  [
    'a handler under a prefix',
    '<rect x:onload="alert(1)" xmlns:x="http://www.w3.org/2000/svg"/>',
    ['x:onload of <rect>'],
  ],
  [
    'foreignObject',
    `<foreignObject width="9" height="9"><body ${xhtml}><img src="x" onerror="alert(1)"/></body></foreignObject>`,
    ['<foreignObject>'],
  ],
  [
    'HTML in the drawing',
    `<h:iframe xmlns:h="http://www.w3.org/1999/xhtml" src="//e.example"/>`,
    ['<h:iframe>'],
  ],
  ['an image', '<image href="https://evil.example/x.png" width="1" height="1"/>', ['<image>']],
  ['an old image', '<image xlink:href="//evil.example/x.png"/>', ['<image>']],
  ['an image in itself', '<image href="data:image/svg+xml;base64,PHN2Zz4="/>', ['<image>']],
  ['use of another document', '<use href="https://evil.example/x.svg#a"/>', ['href of <use>']],
  ['old use of another document', '<use xlink:href="x.svg#a"/>', ['href of <use>']],
  ['use of data', '<use href="data:image/svg+xml,&lt;svg/&gt;#a"/>', ['href of <use>']],
  ['use of a script', '<use href="&#106;avascript:alert(1)"/>', ['href of <use>']],
  ['a pattern elsewhere', '<pattern href="//evil.example/x#p"/>', ['href of <pattern>']],
  ['a link', '<a href="javascript:alert(1)"><rect width="3"/></a>', ['<a>']],
  [
    'a link that looks safe',
    '<a xlink:href=" java&#10;script:alert(1)"><rect width="3"/></a>',
    ['<a>'],
  ],
  ['an animation', '<rect><animate attributeName="x" to="1"/></rect>', ['<animate>']],
  [
    'an animation that makes a link',
    '<g><set attributeName="href" to="javascript:alert(1)"/></g>',
    ['<set>'],
  ],
  ['a handler of an animation', '<animate onbegin="alert(1)" attributeName="x"/>', ['<animate>']],
  ['a paint elsewhere', '<rect fill="url(https://evil.example/#a)"/>', ['fill of <rect>']],
  ['a paint of another file', '<rect fill="url(x.svg#a)"/>', ['fill of <rect>']],
  ['a paint in escapes', '<rect fill="\\75rl(https://evil.example/#a)"/>', ['fill of <rect>']],
  ['a paint that ends early', '<rect fill="url(#a) url(//evil.example)"/>', ['fill of <rect>']],
  ['a colour that loads', '<rect fill="image-set(\'//evil.example\' 1x)"/>', ['fill of <rect>']],
  ['a filter elsewhere', '<rect filter="url(\'//evil.example/f#x\')"/>', ['filter of <rect>']],
  ['a mask elsewhere', '<rect mask="url(&quot;//evil.example/m#x&quot;)"/>', ['mask of <rect>']],
  [
    'an image in a filter',
    '<filter id="f"><feImage href="//evil.example"/></filter>',
    ['<feImage>'],
  ],
  ['a cursor', '<rect cursor="url(//evil.example/c.cur)"/>', ['cursor of <rect>']],
  ['a marker', '<path marker-end="url(#m)" d="M0 0"/>', ['marker-end of <path>']],
  [
    'a style that loads',
    '<rect style="fill:url(//evil.example/#a)"/>',
    ['fill in style of <rect>'],
  ],
  [
    'a style that shows a picture',
    '<rect style="background-image:url(//evil.example)"/>',
    ['background-image in style of <rect>'],
  ],
  [
    'a style in escapes and comments',
    '<rect style="fi/**/ll:red;fill:u\\72l(//evil.example)"/>',
    ['fi ll in style of <rect>', 'fill in style of <rect>'],
  ],
  ['an import', '<style>@import url(//evil.example/x.css);</style>', ['style rule @import']],
  [
    'an import in CDATA',
    '<style><![CDATA[@import "//evil.example";]]></style>',
    ['style rule @import'],
  ],
  [
    'a font from elsewhere',
    '<style>@font-face{font-family:x;src:url(//evil.example/f)}</style>',
    ['style rule @font-face'],
  ],
  [
    'a rule that loads',
    '<style>rect{fill:url(//evil.example/#a);stroke:url( //evil.example )}</style><rect/>',
    ['fill in style', 'stroke in style'],
  ],
  [
    'a rule that tells what it sees',
    '<style>text[id^="a"]{fill:red}</style>',
    ['style rule text[id^="a"]'],
  ],
  [
    'a rule inside of a rule',
    '<style>rect{fill:red;&amp; g{fill:url(//evil.example)}}</style>',
    ['a nested style rule'],
  ],
  ['a rule that never ends', '<style>rect{fill:url(//evil.example</style>', ['fill in style']],
  ['a comment that never ends', '<style>/* /* rect{fill:red}</style>', []],
  [
    'a style sheet under a prefix',
    `<h:style xmlns:h="http://www.w3.org/1999/xhtml">x</h:style>`,
    ['<h:style>'],
  ],
  ['a base', '<g xml:base="https://evil.example/"><use href="#a"/></g>', ['xml:base of <g>']],
  ['a handler element', '<handler type="text/ecmascript">alert(1)</handler>', ['<handler>']],
  ['a listener', '<ev:listener xmlns:ev="http://www.w3.org/2001/xml-events"/>', ['<ev:listener>']],
  [
    'an inclusion',
    '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd"/>',
    ['<xi:include>'],
  ],
  ['metadata', '<metadata><rdf xmlns="urn:x">me</rdf></metadata>', ['<metadata>']],
  ['a video', '<video href="//evil.example"/>', ['<video>']],
  [
    'a text along a path',
    '<text><textPath href="//evil.example#p">x</textPath></text>',
    ['<textPath>'],
  ],
  [
    'a switch',
    '<switch><foreignObject/><g><script/></g></switch>',
    ['<switch>', '<foreignObject>', '<script>'],
  ],
  ['text that looks like a script', '<text>&lt;script&gt;alert(1)&lt;/script&gt;</text>', []],
  ['a title that ends early', '<title>&lt;/title&gt;&lt;script&gt;</title>', []],
  ['an instruction', '<?xml-stylesheet href="//evil.example/x.css"?>', ['<?xml-stylesheet?>']],
  ['an id that ends early', '<g id="a&quot; onload=&quot;alert(1)"/>', ['id of <g>']],
  ['a path that ends early', '<path d="M0 0&quot;/&gt;&lt;script&gt;"/>', ['d of <path>']],
  ['a transform that loads', '<g transform="url(//evil.example)"/>', ['transform of <g>']],
  [
    'a font that loads',
    '<text font-family="url(//evil.example)">x</text>',
    ['font-family of <text>'],
  ],
  ['a variable', '<g fill="var(--x, url(//evil.example))"/>', ['fill of <g>']],
]

/** What cannot be trusted at all. */
export const refusedDrawings: readonly (readonly [name: string, drawing: string])[] = (() => {
  const svg = 'xmlns="http://www.w3.org/2000/svg"'
  return [
    [
      'a DOCTYPE',
      `<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://x/svg11.dtd"><svg ${svg}/>`,
    ],
    ['an entity', `<!DOCTYPE svg [<!ENTITY x "y">]><svg ${svg}><text>&x;</text></svg>`],
    [
      'an entity of a file',
      `<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg ${svg}/>`,
    ],
    [
      'entities of entities',
      `<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;">]><svg ${svg}><text>&c;</text></svg>`,
    ],
    [
      'a parameter entity',
      `<!DOCTYPE svg [<!ENTITY % x SYSTEM "//evil.example">%x;]><svg ${svg}/>`,
    ],
    ['an entity that nobody knows', `<svg ${svg}><text>&nbsp;</text></svg>`],
    ['a tag that is not closed', `<svg ${svg}><g></svg>`],
    ['an end that is missing', `<svg ${svg}><g/>`],
    ['two roots', `<svg ${svg}/><svg ${svg}/>`],
    ['text behind the end', `<svg ${svg}/>x`],
    ['an attribute that is given twice', `<svg ${svg} id="a" id="b"/>`],
    ['a prefix that nobody knows', `<svg ${svg}><x:g/></svg>`],
    ['a character that XML does not know', `<svg ${svg}><text>\u0001</text></svg>`],
    ['NUL', `<svg ${svg}><text>\0</text></svg>`],
    ['a reference to NUL', `<svg ${svg}><text>&#0;</text></svg>`],
    ['use of what it stands in', `<svg ${svg}><g id="a"><use href="#a"/></g></svg>`],
    [
      'use in a ring',
      `<svg ${svg}><g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g></svg>`,
    ],
    [
      'a pattern that is filled with itself',
      `<svg ${svg}><pattern id="p"><rect fill="url(#p)"/></pattern></svg>`,
    ],
  ]
})()

/** What is no drawing at all. */
export const otherDocuments: readonly (readonly [name: string, content: string])[] = [
  ['nothing', ''],
  ['spaces', '  \n '],
  ['a word', 'logo'],
  ['HTML', '<!DOCTYPE html><html><body><svg xmlns="http://www.w3.org/2000/svg"/></body></html>'],
  ['HTML without a DOCTYPE', '<html><script>alert(1)</script></html>'],
  ['XML of another kind', '<feed xmlns="http://www.w3.org/2005/Atom"/>'],
  ['svg without a namespace', '<svg viewBox="0 0 1 1"><path d="M0 0"/></svg>'],
  ['svg of another namespace', '<svg xmlns="http://www.w3.org/1999/xhtml"/>'],
  ['another element of SVG', '<g xmlns="http://www.w3.org/2000/svg"/>'],
  ['a cut comment', '<!-- <svg xmlns="http://www.w3.org/2000/svg"/>'],
  ['a GIF', 'GIF89a\u0001\u0000\u0001\u0000'],
  ['a PDF', '%PDF-1.7'],
  ['JSON', '{"svg": true}'],
]

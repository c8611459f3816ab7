/**
 * Chat templates in the styles of well-known model families, so that the server has to parse
 * reasoning and tool calls in different notations.
 */
export const templates = {
  /** Reasoning in tags; calls are JSON in tags. */
  hermes: `{%- if tools %}
{{- '<|turn|>system\\nFunctions: <tools>' }}
{%- for tool in tools %}{{ '\\n' }}{{ tool | tojson }}{%- endfor %}
{{- '\\n</tools>\\nReturn <tool_call>\\n{"name": <name>, "arguments": <object>}\\n</tool_call><|end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{{- '<|turn|>' + message.role + '\\n' }}
{%- if message.reasoning_content %}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|turn|>assistant\\n' }}{%- endif %}`,

  /** Each parameter of a call in a tag of its own. */
  tags: `{%- if tools %}
{{- '<|turn|>system\\nFunctions: <tools>' }}
{%- for tool in tools %}{{ '\\n' }}{{ tool | tojson }}{%- endfor %}
{{- '\\n</tools>\\nReturn <tool_call>\\n<function=name>\\n<parameter=name>\\nvalue\\n</parameter>\\n</function>\\n</tool_call><|end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{{- '<|turn|>' + message.role + '\\n' }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n<function=' + call.function.name + '>\\n' }}
{%- for name, value in call.function.arguments | items %}
{{- '<parameter=' + name + '>\\n' }}
{{- value if value is string else value | tojson }}
{{- '\\n</parameter>\\n' }}
{%- endfor %}
{{- '</function>\\n</tool_call>' }}
{%- endfor %}
{{- '<|end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|turn|>assistant\\n' }}{%- endif %}`,

  /** Calls after a marker, with their arguments as JSON. */
  marker: `{%- if tools %}{{- '[AVAILABLE_TOOLS]' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '[INST]' + message.content + '[/INST]' }}
{%- elif message.role == 'assistant' %}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '[TOOL_CALLS]' + call.function.name + '[ARGS]' }}
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
{%- endfor %}
{{- '<|end|>' }}
{%- elif message.role == 'tool' %}{{- '[TOOL_RESULTS]' + message.content + '[/TOOL_RESULTS]' }}
{%- elif message.role == 'system' %}{{- '[SYSTEM_PROMPT]' + message.content + '[/SYSTEM_PROMPT]' }}
{%- endif %}
{%- endfor %}`,

  /** Every part of an answer in a channel. */
  channels: `{%- if tools %}{{- '<|start|>developer<|message|># Tools\\n' + (tools | tojson) + '<|end|>' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|start|>functions.tool to=assistant<|channel|>commentary<|message|>' + message.content + '<|end|>' }}
{%- elif message.role == 'assistant' %}
{%- if message.thinking %}{{- '<|start|>assistant<|channel|>analysis<|message|>' + message.thinking + '<|end|>' }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<|start|>assistant<|channel|>commentary to=functions.' + call.function.name + ' <|constrain|>json<|message|>' }}
{{- (call.function.arguments if call.function.arguments is string else call.function.arguments | tojson) + '<|call|>' }}
{%- endfor %}
{%- if message.content %}{{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}{%- endif %}
{%- else %}
{{- '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}`,
}

"""How a byte-level vocabulary cuts a text into words before it merges: the pre-tokenizers of
`tokenizer.ggml.pre`.

The patterns are those of the models' own tokenizers; each cuts the pieces of the one before. Names with the
same pattern are those that llama.cpp treats alike. A wrong cut gives ids that the model has not learned, so
unknown names are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Regex, pre_tokenizers


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """`patterns` cut a text in this order; matches and the text between them are words. `whole_words`: a word
    that is a token is taken without merges. `add_begin`: whether a text begins with the begin token where the
    file does not say."""

    patterns: tuple[str, ...]
    whole_words: bool = False
    add_begin: bool = False

    def build(self) -> pre_tokenizers.PreTokenizer:
        cuts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in self.patterns]
        return pre_tokenizers.Sequence(
            [*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )


_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s"
    r"|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + _SPACES
)  # capitals and small letters apart


def _words(digits: str, head: str = _SUFFIX + "|", signs: str = r" ?[^\s\p{L}\p{N}]+[\r\n]*") -> str:
    """Words with one sign in front, numbers of some length, other signs with line ends after them, and
    spaces."""
    return rf"{head}[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}|{signs}|{_SPACES}"


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_THREES = _words("{1,3}")
_ONES = _words("")
_HAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
# Letters that have capitals, as DeepSeek's first tokenizer lists them.
_CASED_LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f"
    "\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd"
    "\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57"
    "\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec"
    "\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
    "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787"
    "\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)
_WIDE_SIGNS = r"\s?" + "[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
_ASCII_SIGNS = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"
_DEEPSEEK_3 = (
    rf"{_ASCII_SIGNS}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+|"
    rf" ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
)
_QWEN_35 = (
    rf"{_SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}|"
    rf" ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
# one line end at a time
_BAILING = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)

_LLAMA_3 = PreTokenizer((_THREES,), whole_words=True, add_begin=True)
_KINDS: dict[PreTokenizer, str] = {
    PreTokenizer((r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")): "default",
    PreTokenizer((_GPT2,)): (
        "gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat a.x-4.0 mellum modern-bert"
        " roberta-bpe jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code"
    ),
    _LLAMA_3: "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
    PreTokenizer((_THREES,)): "dbrx smaug-bpe glm4 chatglm-bpe",
    PreTokenizer((_ONES,)): "qwen2 deepseek-r1-qwen megrez stablelm2 hunyuan solar-open grok-2 kormo f2llmv2",
    PreTokenizer((_QWEN_35,)): "qwen35",
    PreTokenizer((r"\p{N}", _GPT2)): "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
    PreTokenizer(
        (_CASED % (_SUFFIX + "?", _SUFFIX + "?", "{1,3}"),)
    ): "gpt-4o llama4 kanana2 talkie minimax-m2",
    PreTokenizer((_CASED % ("", "", ""),), whole_words=True, add_begin=True): "tekken",
    PreTokenizer((r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]")): "falcon",
    PreTokenizer(
        (r"[\r\n]", rf"\s?[{_CASED_LETTERS}]+", _WIDE_SIGNS, r"\s+$", _HAN, r"\p{N}+")
    ): "deepseek-llm",
    PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _HAN, r"\p{N}")): "deepseek-coder",
    PreTokenizer(
        (r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", _DEEPSEEK_3)
    ): "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
    PreTokenizer((_BAILING,)): "bailingmoe bailingmoe2 llada-moe",
    PreTokenizer((_words("", signs=r" ?[^\s\p{L}\p{N}\r\n]+"),)): "seed-coder",
    PreTokenizer((_words("", head=""),)): "ufakzeka",
    PreTokenizer((r"\p{N}{1,3}", _words("+")), whole_words=True): "minicpm5",
}
PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    name: kind for kind, names in _KINDS.items() for name in names.split()
}

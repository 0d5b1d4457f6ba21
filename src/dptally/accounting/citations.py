"""The sources: one entry per paper. Theorem strings anywhere in the library name them by their ``tag``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["SOURCES", "Source", "cited", "unknown_tags"]


@dataclass(frozen=True, slots=True)
class Source:
    """A paper or book. ``tag`` is how theorem strings call it: "Mironov 2017" in "Mironov 2017, Prop. 3"."""

    tag: str
    authors: str
    year: int
    title: str
    venue: str
    arxiv: str = ""

    @property
    def key(self) -> str:
        """The BibTeX key: first author, year, first long word of the title."""
        first = re.split(r",| and ", self.authors)[0].split()[-1]
        word = next(w for w in re.findall(r"[A-Za-z]+", self.title) if len(w) > 3)
        return re.sub(r"[^a-z0-9]", "", f"{first}{self.year}{word}".lower())

    def __str__(self) -> str:
        where = f"{self.venue}, {self.year}" + (f". arXiv:{self.arxiv}" if self.arxiv else "")
        return f"{self.authors}. {self.title}. {where}."

    @property
    def doi(self) -> str:
        """The publisher's DOI where one is known here, else arXiv's, else empty."""
        return _DOIS.get(self.tag) or (f"10.48550/arXiv.{self.arxiv}" if self.arxiv else "")

    @property
    def entry(self) -> tuple[str, str]:
        """The BibTeX entry type, and the field that holds the venue."""
        if re.search(r"Journal|Transactions|Annals|Monthly|Foundations and Trends", self.venue):
            return "article", "journal"
        if self.venue == "arXiv preprint":
            return "misc", "howpublished"
        return ("incollection" if "Springer" in self.venue else "inproceedings"), "booktitle"

    def bibtex(self) -> str:
        """A BibTeX entry of its real type.

        >>> print(SOURCES[0].bibtex())
        @inproceedings{mironov2017renyi,
          author = {Ilya Mironov},
          title = {{Renyi Differential Privacy}},
          booktitle = {IEEE Computer Security Foundations Symposium (CSF)},
          year = {2017},
          doi = {10.1109/CSF.2017.11},
          eprint = {1702.07476},
          archiveprefix = {arXiv}
        }
        """
        kind, where = self.entry
        fields = [
            ("author", self.authors),
            ("title", f"{{{self.title}}}"),
            *self._place(where),
            ("year", str(self.year)),
        ]
        fields += [("doi", self.doi)] if self.doi else []
        fields += [("eprint", self.arxiv), ("archiveprefix", "arXiv")] if self.arxiv else []
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields)
        return f"@{kind}{{{self.key},\n{lines}\n}}"

    def _place(self, where: str) -> list[tuple[str, str]]:
        """The venue; volume and number of a journal in fields of their own."""
        match = re.fullmatch(r"(.+?) (\d+)\(([\d-]+)\)", self.venue)
        if match is None:
            return [(where, self.venue)]
        return [(where, match[1]), ("volume", match[2]), ("number", match[3])]


#: DOIs of publishers; a paper without one is found by arXiv's
_DOIS = {
    "Mironov 2017": "10.1109/CSF.2017.11",
    "Dong, Roth, Su 2022": "10.1111/rssb.12454",
    "Bun, Steinke 2016": "10.1007/978-3-662-53641-4_24",
    "Dwork, McSherry, Nissim, Smith 2006": "10.1007/11681878_14",
    "Dwork, Rothblum, Vadhan 2010": "10.1109/FOCS.2010.12",
    "Dwork, Roth 2014": "10.1561/0400000042",
    "Vadhan 2017": "10.1007/978-3-319-57048-8_7",
    "Abadi et al. 2016": "10.1145/2976749.2978318",
    "Ghosh, Roughgarden, Sundararajan 2009": "10.1145/1536414.1536464",
    "Wasserman, Zhou 2010": "10.1198/jasa.2009.tm08651",
    "van Erven, Harremoes 2014": "10.1109/TIT.2014.2320500",
    "Tchen 1980": "10.1214/aop/1176994668",
}

SOURCES: tuple[Source, ...] = (
    Source(
        "Mironov 2017",
        "Ilya Mironov",
        2017,
        "Renyi Differential Privacy",
        "IEEE Computer Security Foundations Symposium (CSF)",
        "1702.07476",
    ),
    Source(
        "Dong, Roth, Su 2022",
        "Jinshuo Dong and Aaron Roth and Weijie J. Su",
        2022,
        "Gaussian Differential Privacy",
        "Journal of the Royal Statistical Society B 84(1)",
        "1905.02383",
    ),
    Source(
        "Bun, Steinke 2016",
        "Mark Bun and Thomas Steinke",
        2016,
        "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds",
        "Theory of Cryptography Conference (TCC)",
        "1605.02065",
    ),
    Source(
        "Kairouz, Oh, Viswanath 2015",
        "Peter Kairouz and Sewoong Oh and Pramod Viswanath",
        2015,
        "The Composition Theorem for Differential Privacy",
        "International Conference on Machine Learning (ICML)",
        "1311.0776",
    ),
    Source(
        "Canonne, Kamath, Steinke 2020",
        "Clement L. Canonne and Gautam Kamath and Thomas Steinke",
        2020,
        "The Discrete Gaussian for Differential Privacy",
        "Advances in Neural Information Processing Systems (NeurIPS)",
        "2004.00010",
    ),
    Source(
        "Balle et al. 2020",
        "Borja Balle and Gilles Barthe and Marco Gaboardi and Justin Hsu and Tetsuya Sato",
        2020,
        "Hypothesis Testing Interpretations and Renyi Differential Privacy",
        "International Conference on Artificial Intelligence and Statistics (AISTATS)",
        "1905.09982",
    ),
    Source(
        "Balle, Wang 2018",
        "Borja Balle and Yu-Xiang Wang",
        2018,
        "Improving the Gaussian Mechanism for Differential Privacy: Analytical Calibration and Optimal Denoising",
        "International Conference on Machine Learning (ICML)",
        "1805.06530",
    ),
    Source(
        "Balle, Barthe, Gaboardi 2018",
        "Borja Balle and Gilles Barthe and Marco Gaboardi",
        2018,
        "Privacy Amplification by Subsampling: Tight Analyses via Couplings and Divergences",
        "Advances in Neural Information Processing Systems (NeurIPS)",
        "1807.01647",
    ),
    Source(
        "Zhu, Dong, Wang 2022",
        "Yuqing Zhu and Jinshuo Dong and Yu-Xiang Wang",
        2022,
        "Optimal Accounting of Differential Privacy via Characteristic Function",
        "International Conference on Artificial Intelligence and Statistics (AISTATS)",
        "2106.08567",
    ),
    Source(
        "Liu et al. 2022",
        "Yi Liu and Ke Sun and Bei Jiang and Linglong Kong",
        2022,
        "Identification, Amplification and Measurement: A Bridge to Gaussian Differential Privacy",
        "Advances in Neural Information Processing Systems (NeurIPS)",
        "2210.09269",
    ),
    Source(
        "Liu, Wang 2025",
        "Yifeng Liu and Zehua Wang",
        2025,
        "A Novel Approach to Differential Privacy with Alpha Divergence",
        "IEEE Computer Security Foundations Symposium (CSF)",
    ),
    Source(
        "Dwork, McSherry, Nissim, Smith 2006",
        "Cynthia Dwork and Frank McSherry and Kobbi Nissim and Adam Smith",
        2006,
        "Calibrating Noise to Sensitivity in Private Data Analysis",
        "Theory of Cryptography Conference (TCC)",
    ),
    Source(
        "Dwork, Rothblum, Vadhan 2010",
        "Cynthia Dwork and Guy N. Rothblum and Salil Vadhan",
        2010,
        "Boosting and Differential Privacy",
        "IEEE Symposium on Foundations of Computer Science (FOCS)",
    ),
    Source(
        "Dwork, Roth 2014",
        "Cynthia Dwork and Aaron Roth",
        2014,
        "The Algorithmic Foundations of Differential Privacy",
        "Foundations and Trends in Theoretical Computer Science 9(3-4)",
    ),
    Source(
        "Vadhan 2017",
        "Salil Vadhan",
        2017,
        "The Complexity of Differential Privacy",
        "Tutorials on the Foundations of Cryptography (Springer)",
    ),
    Source(
        "Abadi et al. 2016",
        "Martin Abadi and Andy Chu and Ian Goodfellow and H. Brendan McMahan and Ilya Mironov "
        "and Kunal Talwar and Li Zhang",
        2016,
        "Deep Learning with Differential Privacy",
        "ACM Conference on Computer and Communications Security (CCS)",
        "1607.00133",
    ),
    Source(
        "Ghosh, Roughgarden, Sundararajan 2009",
        "Arpita Ghosh and Tim Roughgarden and Mukund Sundararajan",
        2009,
        "Universally Utility-Maximizing Privacy Mechanisms",
        "ACM Symposium on Theory of Computing (STOC)",
        "0811.2841",
    ),
    Source(
        "Wasserman, Zhou 2010",
        "Larry Wasserman and Shuheng Zhou",
        2010,
        "A Statistical Framework for Differential Privacy",
        "Journal of the American Statistical Association 105(489)",
        "0811.2501",
    ),
    Source(
        "van Erven, Harremoes 2014",
        "Tim van Erven and Peter Harremoes",
        2014,
        "Renyi Divergence and Kullback-Leibler Divergence",
        "IEEE Transactions on Information Theory 60(7)",
        "1206.2459",
    ),
    Source(
        "Asoodeh et al. 2021",
        "Shahab Asoodeh and Jiachun Liao and Flavio P. Calmon and Oliver Kosut and Lalitha Sankar",
        2021,
        "Three Variants of Differential Privacy: Lossless Conversion and Applications",
        "IEEE Journal on Selected Areas in Information Theory 2(1)",
        "2008.06529",
    ),
    Source(
        "Choquette-Choo et al. 2023",
        "Christopher A. Choquette-Choo and Arun Ganesh and Thomas Steinke and Abhradeep Thakurta",
        2023,
        "Privacy Amplification for Matrix Mechanisms",
        "arXiv preprint",
        "2310.15526",
    ),
    Source(
        "Ganesh 2024",
        "Arun Ganesh",
        2024,
        "Tight Group-Level DP Guarantees for DP-SGD with Sampling via Mixture of Gaussians Mechanisms",
        "arXiv preprint",
        "2401.10294",
    ),
    Source(
        "Ganesh 2025",
        "Arun Ganesh",
        2025,
        "Tighter Privacy Analysis for Truncated Poisson Sampling",
        "arXiv preprint",
        "2508.15089",
    ),
    Source(
        "Chua et al. 2024",
        "Lynn Chua and Badih Ghazi and Pritish Kamath and Ravi Kumar and Pasin Manurangsi and Amer Sinha "
        "and Chiyuan Zhang",
        2024,
        "How Private are DP-SGD Implementations?",
        "International Conference on Machine Learning (ICML)",
        "2403.17673",
    ),
    Source(
        "Chua et al. 2025",
        "Lynn Chua and Badih Ghazi and Charlie Harrison and Ethan Leeman and Pritish Kamath and Ravi Kumar "
        "and Pasin Manurangsi and Amer Sinha and Chiyuan Zhang",
        2025,
        "Balls-and-Bins Sampling for DP-SGD",
        "International Conference on Artificial Intelligence and Statistics (AISTATS)",
        "2412.16802",
    ),
    Source(
        "Feldman, Shenfeld 2025",
        "Vitaly Feldman and Moshe Shenfeld",
        2025,
        "Privacy Amplification by Random Allocation",
        "Advances in Neural Information Processing Systems (NeurIPS)",
        "2502.08202",
    ),
    Source(
        "Denisov et al. 2022",
        "Sergey Denisov and H. Brendan McMahan and John Rush and Adam Smith and Abhradeep Guha Thakurta",
        2022,
        "Improved Differential Privacy for SGD via Optimal Private Linear Operators on Adaptive Streams",
        "Advances in Neural Information Processing Systems (NeurIPS)",
        "2202.08312",
    ),
    Source(
        "Kalinin, Lampert 2024",
        "Nikita P. Kalinin and Christoph H. Lampert",
        2024,
        "Banded Square Root Matrix Factorization for Differentially Private Model Training",
        "Advances in Neural Information Processing Systems (NeurIPS)",
        "2405.13763",
    ),
    Source(
        "Choquette-Choo, Ganesh, McKenna et al. 2023",
        "Christopher A. Choquette-Choo and Arun Ganesh and Ryan McKenna and H. Brendan McMahan and Keith Rush "
        "and Abhradeep Guha Thakurta and Zheng Xu",
        2023,
        "(Amplified) Banded Matrix Factorization: A Unified Approach to Private Training",
        "Advances in Neural Information Processing Systems (NeurIPS)",
        "2306.08153",
    ),
    Source(
        "Choquette-Choo, Ganesh, Haque et al. 2024",
        "Christopher A. Choquette-Choo and Arun Ganesh and Saminul Haque and Thomas Steinke and Abhradeep Thakurta",
        2024,
        "Near Exact Privacy Amplification for Matrix Mechanisms",
        "arXiv preprint",
        "2410.06266",
    ),
    Source(
        "McSherry, Talwar 2007",
        "Frank McSherry and Kunal Talwar",
        2007,
        "Mechanism Design via Differential Privacy",
        "IEEE Symposium on Foundations of Computer Science (FOCS)",
    ),
    Source(
        "Dong, Durfee, Rogers 2020",
        "Jinshuo Dong and David Durfee and Ryan Rogers",
        2020,
        "Optimal Differential Privacy Composition for Exponential Mechanisms",
        "International Conference on Machine Learning (ICML)",
        "1909.13830",
    ),
    Source(
        "Cesar, Rogers 2021",
        "Mark Cesar and Ryan Rogers",
        2021,
        "Bounding, Concentrating, and Truncating: Unifying Privacy Loss Composition for Data Analytics",
        "International Conference on Algorithmic Learning Theory (ALT)",
        "2004.07223",
    ),
    Source(
        "McKenna, Sheldon 2020",
        "Ryan McKenna and Daniel Sheldon",
        2020,
        "Permute-and-Flip: A New Mechanism for Differentially Private Selection",
        "Advances in Neural Information Processing Systems (NeurIPS)",
        "2010.12603",
    ),
    Source(
        "Ding et al. 2021",
        "Zeyu Ding and Daniel Kifer and Sayed M. Saghaian N. E. and Thomas Steinke and Yuxin Wang and Yingtai Xiao "
        "and Danfeng Zhang",
        2021,
        "The Permute-and-Flip Mechanism is Identical to Report-Noisy-Max with Exponential Noise",
        "arXiv preprint",
        "2105.07260",
    ),
    Source(
        "Durfee, Rogers 2019",
        "David Durfee and Ryan Rogers",
        2019,
        "Practical Differentially Private Top-k Selection with Pay-what-you-get Composition",
        "Advances in Neural Information Processing Systems (NeurIPS)",
        "1905.04273",
    ),
    Source(
        "Lyu, Su, Li 2017",
        "Min Lyu and Dong Su and Ninghui Li",
        2017,
        "Understanding the Sparse Vector Technique for Differential Privacy",
        "Proceedings of the VLDB Endowment",
        "1603.01699",
    ),
    Source(
        "Lorentz 1953",
        "G. G. Lorentz",
        1953,
        "An Inequality for Rearrangements",
        "The American Mathematical Monthly 60(3)",
    ),
    Source(
        "Tchen 1980",
        "Andre H. Tchen",
        1980,
        "Inequalities for Distributions with Given Marginals",
        "The Annals of Probability 8(4)",
    ),
    Source(
        "Papernot, Steinke 2022",
        "Nicolas Papernot and Thomas Steinke",
        2022,
        "Hyperparameter Tuning with Renyi Differential Privacy",
        "International Conference on Learning Representations (ICLR)",
        "2110.03620",
    ),
    Source(
        "Koskela, Redberg, Wang 2024",
        "Antti Koskela and Rachel Redberg and Yu-Xiang Wang",
        2024,
        "Privacy Profiles for Private Selection",
        "International Conference on Machine Learning (ICML)",
        "2402.06701",
    ),
    Source(
        "Balle, Bell, Gascon, Nissim 2019",
        "Borja Balle and James Bell and Adria Gascon and Kobbi Nissim",
        2019,
        "The Privacy Blanket of the Shuffle Model",
        "Advances in Cryptology (CRYPTO), Springer",
        "1903.02837",
    ),
    Source(
        "Feldman, McMillan, Talwar 2021",
        "Vitaly Feldman and Audra McMillan and Kunal Talwar",
        2021,
        "Hiding Among the Clones: A Simple and Nearly Optimal Analysis of Privacy Amplification by Shuffling",
        "IEEE Symposium on Foundations of Computer Science (FOCS)",
        "2012.12803",
    ),
    Source(
        "Erlingsson, Pihur, Korolova 2014",
        "Ulfar Erlingsson and Vasyl Pihur and Aleksandra Korolova",
        2014,
        "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response",
        "ACM Conference on Computer and Communications Security (CCS)",
        "1407.6981",
    ),
)

_TAG = re.compile(r"(?:[A-Z][A-Za-z]+(?:, | and | et al\. | )?)+(?:19|20)\d\d")


def cited(theorems: Iterable[str]) -> tuple[Source, ...]:
    """The sources that these theorem strings name, in the order of the table, each once.

    >>> [source.tag for source in cited(["Mironov 2017, Prop. 3", "Bun, Steinke 2016, Prop. 1.3"])]
    ['Mironov 2017', 'Bun, Steinke 2016']
    """
    text = "\n".join(theorems)
    return tuple(source for source in SOURCES if source.tag in text)


def unknown_tags(theorems: Iterable[str]) -> tuple[str, ...]:
    """What looks like "Author Year" in these strings and is not in the table (for the tests)."""
    text = "\n".join(theorems)
    for source in sorted(SOURCES, key=lambda source: -len(source.tag)):
        text = text.replace(source.tag, "")
    return tuple(_TAG.findall(text))

"""Worked examples: a world of providers, a query, and all candidates of the query.

Three tests use each case: with the solver alone, with rows in a database, and over HTTP.
`worlds` explains the notation.
"""

from dataclasses import dataclass

from placement.microversion import Version
from placement.tests import worlds


@dataclass(frozen=True, kw_only=True)
class Row:
    """A query for the world of an example."""

    query: str
    # The expected candidates.
    candidates: str
    # The minor version of the request; None for the newest.
    minor: int | None = None
    # The providers with a summary; None if they are not checked.
    summaries: str | None = None


@dataclass(frozen=True)
class Case:
    """A query with its world and its name."""

    name: str
    world: worlds.World
    row: Row

    @property
    def version(self) -> Version:
        minor = self.row.minor
        return worlds.NEWEST if minor is None else Version(1, minor)

    @property
    def expected(self) -> worlds.Candidates:
        return worlds.expected(self.row.candidates)

    def comparable(self, found: worlds.Candidates) -> worlds.Candidates:
        """Return candidates without mappings if the example does not have them."""
        if all(mappings for _, mappings in self.expected):
            return found
        return worlds.without_mappings(found)


_CASES: list[Case] = []


def _example(name: str, drawing: str, *rows: Row) -> None:
    """Add one case for each row of a world."""
    world = worlds.World.of(drawing)
    _CASES.extend(Case(f'{name}.{number}', world, row) for number, row in enumerate(rows, 1))


_NESTED = """
CN[V:8, M:1024] {VMX}
  NUMA0[VF:4] {PHYS1}
  NUMA1[VF:4, V:4] {PHYS2}
"""
_example(
    'the unsuffixed group spans a tree',
    _NESTED,
    Row(
        query='resources=V:2,VF:1',
        candidates=(
            "CN{V:2} NUMA0{VF:1} (''=CN+NUMA0); CN{V:2} NUMA1{VF:1} (''=CN+NUMA1);"
            "NUMA0{VF:1} NUMA1{V:2} (''=NUMA0+NUMA1); NUMA1{V:2,VF:1} (''=NUMA1)"
        ),
        summaries='CN NUMA0 NUMA1',
    ),
    Row(query='resources=V:2,VF:1', candidates='NUMA1{V:2,VF:1}', minor=28, summaries='NUMA1'),
)
_example(
    'traits of the unsuffixed group',
    _NESTED,
    Row(query='resources=V:2,VF:1&required=VMX,PHYS1', candidates='CN{V:2} NUMA0{VF:1}'),
    Row(query='resources=V:2,VF:1&required=VMX,!PHYS1', candidates='CN{V:2} NUMA1{VF:1}'),
    Row(query='resources=VF:1&required=VMX', candidates=''),
    Row(query='resources=VF:1&required=!VMX', candidates='NUMA0{VF:1}; NUMA1{VF:1}'),
    Row(
        query='resources=V:1,VF:1&required=in:PHYS1,PHYS2&required=VMX',
        candidates='CN{V:1} NUMA0{VF:1}; CN{V:1} NUMA1{VF:1}',
    ),
    # Before microversion 1.39, Placement uses only the last value of `required`.
    Row(query='resources=VF:1&required=VMX&required=PHYS1', candidates='NUMA0{VF:1}', minor=38),
)
_example(
    'a suffixed group is one provider',
    _NESTED,
    Row(query='resources1=V:1,VF:1', candidates='NUMA1{V:1,VF:1} (1=NUMA1)'),
    Row(
        query='resources=V:1&resources1=VF:1&required1=PHYS2',
        candidates="CN{V:1} NUMA1{VF:1} (''=CN 1=NUMA1); NUMA1{V:1,VF:1} (''=NUMA1 1=NUMA1)",
    ),
)

_example(
    'any-set of traits',
    """
CN[V:8] {AVX}
  G0[VGPU:1] {T1}
  G1[VGPU:1] {T2}
  G2[VGPU:1] {T1 T2}
""",
    Row(
        query='resources=VGPU:1&required=in:T1,T2', candidates='G0{VGPU:1}; G1{VGPU:1}; G2{VGPU:1}'
    ),
    Row(query='resources=VGPU:1&required=T1,T2', candidates='G2{VGPU:1}'),
    Row(query='resources1=VGPU:1&required1=in:T1,T2&required1=!T2', candidates='G0{VGPU:1} (1=G0)'),
    Row(query='resources=VGPU:1&required=in:AVX,T1', candidates='G0{VGPU:1}; G2{VGPU:1}'),
)

_SHARED = """
CN1[V:8] @S,A
CN2[V:8] @S
CN3[V:8, D:100] @S,A
SS[D:100] {SHARE} @S
"""
_FOUR = 'CN1{V:1} SS{D:10}; CN2{V:1} SS{D:10}; CN3{V:1,D:10}; CN3{V:1} SS{D:10}'
_example(
    'a sharing provider',
    _SHARED,
    Row(query='resources=V:1,D:10', candidates=_FOUR),
    Row(query='resources=D:10', candidates='CN3{D:10}; SS{D:10}'),
    Row(
        query='resources=V:1&resources1=D:10',
        candidates=(
            "CN1{V:1} SS{D:10} (''=CN1 1=SS); CN2{V:1} SS{D:10} (''=CN2 1=SS);"
            "CN3{V:1,D:10} (''=CN3 1=CN3); CN3{V:1} SS{D:10} (''=CN3 1=SS)"
        ),
    ),
    Row(
        query='resources=V:1,D:10&required=SHARE',
        candidates='CN1{V:1} SS{D:10}; CN2{V:1} SS{D:10}; CN3{V:1} SS{D:10}',
    ),
    Row(query='resources=V:1,D:10&required=!SHARE', candidates='CN3{V:1,D:10}'),
    Row(query='resources=V:1,D:10&in_tree=CN1', candidates=''),
    Row(query='resources=V:1,D:10&in_tree=CN3', candidates='CN3{V:1,D:10}'),
    Row(query='resources=D:10&in_tree=SS', candidates='SS{D:10}'),
)
_example(
    # The picture doc/pictures/sharing.dot shows this case.
    'a tree and a sharing provider',
    """
HOST[D:100] @RACK
  NUMA0[V:8]
  NUMA1[V:8]
POOL[D:2000] {SHARE} @RACK
""",
    Row(
        query='resources=V:1,D:10',
        candidates=(
            'NUMA0{V:1} POOL{D:10}; NUMA1{V:1} POOL{D:10};'
            'NUMA0{V:1} HOST{D:10}; NUMA1{V:1} HOST{D:10}'
        ),
    ),
)
_example(
    'member_of and sharing',
    _SHARED,
    Row(query='resources=V:1,D:10&member_of=A', candidates='CN3{V:1,D:10}'),
    Row(query='resources=V:1,D:10&member_of=S', candidates=_FOUR),
    Row(query='resources=V:1,D:10&member_of=!A', candidates='CN2{V:1} SS{D:10}'),
    Row(query='resources=V:1,D:10&member_of=!S', candidates=''),
)
_example(
    'member_of and sharing with the sharing provider as a member',
    _SHARED.replace('{SHARE} @S', '{SHARE} @S,A'),
    Row(
        query='resources=V:1,D:10&member_of=A',
        candidates='CN1{V:1} SS{D:10}; CN3{V:1,D:10}; CN3{V:1} SS{D:10}',
    ),
    Row(query='resources=V:1,D:10&member_of=!A', candidates=''),
)

_example(
    'member_of in trees',
    """
R1[V:8] @A
  C1[VF:4]
R2[V:8]
  C2[VF:4] @A
R3[V:8] @A,B
  C3[VF:4] @B
""",
    Row(query='resources=VF:1&member_of=A', candidates='C1{VF:1}; C2{VF:1}; C3{VF:1}'),
    Row(query='resources=V:1,VF:1&member_of=A', candidates='R1{V:1} C1{VF:1}; R3{V:1} C3{VF:1}'),
    Row(query='resources1=VF:1&member_of1=A', candidates='C2{VF:1}'),
    Row(query='resources1=VF:1&member_of1=!A', candidates='C1{VF:1}; C3{VF:1}'),
    Row(query='resources=VF:1&member_of=A&member_of=B', candidates='C3{VF:1}'),
    Row(query='resources=VF:1&member_of=in:A,B', candidates='C1{VF:1}; C2{VF:1}; C3{VF:1}'),
    Row(query='resources=VF:1&member_of=!A', candidates=''),
    Row(query='resources=VF:1&member_of=!UNKNOWN', candidates='C1{VF:1}; C2{VF:1}; C3{VF:1}'),
    Row(
        query='resources=V:1&resources1=VF:1&member_of1=A',
        candidates="R2{V:1} C2{VF:1} (''=R2 1=C2)",
    ),
)

_example(
    'sharing through the aggregate of a child',
    """
CN[V:8]
  K[VGPU:8] @S
SS[D:100] {SHARE} @S
S2[D:100, IPV4_ADDRESS:10] {SHARE} @S
""",
    Row(
        query='resources=V:1,D:1',
        candidates='CN{V:1} SS{D:1}; CN{V:1} S2{D:1}',
        summaries='CN K SS S2',
    ),
    Row(
        query='resources=V:1,D:1',
        candidates='CN{V:1} SS{D:1}; CN{V:1} S2{D:1}',
        minor=28,
        summaries='CN SS S2',
    ),
    Row(
        query='resources=D:1,IPV4_ADDRESS:1',
        candidates='S2{D:1,IPV4_ADDRESS:1}; SS{D:1} S2{IPV4_ADDRESS:1}',
    ),
    Row(
        query='resources=VGPU:1&resources1=D:1&resources2=D:1&group_policy=isolate',
        candidates=(
            "K{VGPU:1} SS{D:1} S2{D:1} (''=K 1=SS 2=S2);K{VGPU:1} SS{D:1} S2{D:1} (''=K 1=S2 2=SS)"
        ),
    ),
    Row(query='resources1=VGPU:1&resources2=D:1&group_policy=none&same_subtree=1,2', candidates=''),
)

_example(
    'providers that do not share',
    """
CN[V:8] @S
SS[D:100] {SHARE}
N[D:100] @S
""",
    Row(query='resources=V:1,D:1', candidates=''),
    Row(query='resources=D:1', candidates='SS{D:1}; N{D:1}'),
)

_example(
    'root_required',
    """
CN1[V:8] {GOLD} @S
  K1[VGPU:2] {BLUE}
CN2[V:8] @S
  K2[VGPU:2] {GOLD}
SS[D:100] {SHARE BLUE} @S
""",
    Row(query='resources=V:1,D:1&root_required=GOLD', candidates='CN1{V:1} SS{D:1}'),
    Row(query='resources=V:1,D:1&root_required=!GOLD', candidates='CN2{V:1} SS{D:1}'),
    Row(query='resources=VGPU:1&root_required=GOLD', candidates='K1{VGPU:1}'),
    Row(query='resources=VGPU:1&root_required=!BLUE', candidates='K1{VGPU:1}; K2{VGPU:1}'),
    Row(query='resources1=D:1&root_required=GOLD', candidates='SS{D:1}'),
    Row(query='resources=V:1&resources1=D:1&root_required=GOLD', candidates='CN1{V:1} SS{D:1}'),
    Row(query='resources=D:1&in_tree=SS&root_required=GOLD', candidates=''),
)

_NUMA = """
CN[V:8] {HW}
  N0[M:100] {NUMA}
    G0[VGPU:2]
    F0[FPGA:1]
  N1[M:100] {NUMA FOO}
    G1[VGPU:2]
    F1[FPGA:1]
"""
_TWINS = 'G0{VGPU:1} F0{FPGA:1} (_G=G0 _F=F0 _N=N0); G1{VGPU:1} F1{FPGA:1} (_G=G1 _F=F1 _N=N1)'
_example(
    'same_subtree',
    _NUMA,
    Row(
        query='resources_M=M:10&resources_G=VGPU:1&group_policy=none&same_subtree=_M,_G',
        candidates='N0{M:10} G0{VGPU:1}; N1{M:10} G1{VGPU:1}',
    ),
    Row(
        query='resources_G=VGPU:1&resources_F=FPGA:1&group_policy=none&same_subtree=_F,_G',
        candidates='',
    ),
    Row(
        query=(
            'resources_G=VGPU:1&resources_F=FPGA:1&required_N=NUMA&group_policy=none'
            '&same_subtree=_F,_G,_N'
        ),
        candidates=_TWINS,
    ),
    Row(
        query=(
            'resources_G=VGPU:1&resources_F=FPGA:1&required_N=NUMA&group_policy=isolate'
            '&same_subtree=_F,_N&same_subtree=_G,_N'
        ),
        candidates=_TWINS,
    ),
    Row(
        query='resources_G=VGPU:1&required_N=NUMA,!FOO&group_policy=isolate&same_subtree=_G,_N',
        candidates='G0{VGPU:1} (_G=G0 _N=N0)',
    ),
)
_example(
    'groups without resources',
    _NUMA,
    Row(
        query='resources=V:1&required_N=NUMA&same_subtree=_N',
        candidates="CN{V:1} (''=CN _N=N0); CN{V:1} (''=CN _N=N1)",
    ),
    Row(
        query='resources=V:1&required_N=NUMA&required_O=NUMA&same_subtree=_N,_O&group_policy=none',
        candidates="CN{V:1} (''=CN _N=N0 _O=N0); CN{V:1} (''=CN _N=N1 _O=N1)",
    ),
    # Each kind of condition applies even if it is the only condition of the group.
    Row(
        query='resources=V:1&required_N=!FOO,!HW&same_subtree=_N&in_tree_N=CN',
        candidates=(
            "CN{V:1} (''=CN _N=N0); CN{V:1} (''=CN _N=G0); CN{V:1} (''=CN _N=F0);"
            "CN{V:1} (''=CN _N=G1); CN{V:1} (''=CN _N=F1)"
        ),
    ),
)

_DEVICES = """
CN[V:8]
  PF1[VF: total 4 max_unit 2] {A}
  PF2[VF: total 4 max_unit 4] {A B}
"""
_CROSSED = 'PF1{VF:1} PF2{VF:1} (1=PF1 2=PF2); PF1{VF:1} PF2{VF:1} (1=PF2 2=PF1)'
_DOUBLE = 'PF1{VF:2} (1=PF1 2=PF1); PF2{VF:2} (1=PF2 2=PF2)'
_example(
    'several groups of one class',
    _DEVICES,
    Row(
        query='resources1=VF:1&resources2=VF:1&group_policy=none',
        candidates=f'{_CROSSED}; {_DOUBLE}',
    ),
    Row(query='resources1=VF:1&resources2=VF:1&group_policy=isolate', candidates=_CROSSED),
    Row(query='resources1=VF:1,V:1', candidates=''),
    Row(query='resources=V:1&resources1=V:7', candidates='CN{V:8}'),
    Row(query='resources=V:1&resources1=V:8', candidates=''),
    Row(
        query='resources1=VF:1&resources2=VF:1&group_policy=none',
        candidates='PF1{VF:2}; PF2{VF:2}',
        minor=28,
    ),
    # If the unsuffixed and a suffixed group request the same class, each gets its own amount.
    Row(
        query='resources=VF:1&resources2=VF:1',
        candidates=(
            "PF1{VF:1} PF2{VF:1} (''=PF1 2=PF2); PF1{VF:1} PF2{VF:1} (''=PF2 2=PF1);"
            "PF1{VF:2} (''=PF1 2=PF1); PF2{VF:2} (''=PF2 2=PF2)"
        ),
    ),
)

_example(
    'usage counts in addition to the sum of groups',
    'CN[V: total 8 used 4]',
    Row(query='resources1=V:2&resources2=V:3&group_policy=none', candidates=''),
    Row(query='resources1=V:2&resources2=V:2&group_policy=none', candidates='CN{V:4}'),
)

_POOL = """
CN1[V:8] @S
CN2[V:8] @S
CN3[V:8]
SS[D:100] {SHARE} @S
"""
_example(
    'several groups on one sharing provider',
    _POOL,
    Row(query='resources1=D:5&resources2=D:6&group_policy=none', candidates='SS{D:11} (1=SS 2=SS)'),
    Row(query='resources1=D:5&resources2=D:6&group_policy=isolate', candidates=''),
    # A group that only sharing providers can serve has the same providers for every anchor.
    Row(
        query='resources=D:10&resources1=V:1',
        candidates="CN1{V:1} SS{D:10} (''=SS 1=CN1); CN2{V:1} SS{D:10} (''=SS 1=CN2)",
    ),
)
_example(
    'a sharing provider below a root that lacks a class',
    """
CN[V:8] @S
R[M:8]
  SC[D:100] {SHARE} @S
""",
    Row(query='resources=V:1,D:1', candidates="CN{V:1} SC{D:1} (''=CN+SC)", summaries='CN R SC'),
    Row(query='resources=V:1,D:1', candidates='CN{V:1} SC{D:1}', minor=28, summaries='CN SC'),
)
_example(
    'sharing providers of which only some trees can use both',
    """
CN1[V:8] @S
CN2[V:8] @S,P
S1[D:100] {SHARE} @S
S2[IPV4_ADDRESS:10] {SHARE} @P
""",
    Row(query='resources=D:1,IPV4_ADDRESS:1', candidates='S1{D:1} S2{IPV4_ADDRESS:1}'),
    Row(query='resources=V:1,D:1,IPV4_ADDRESS:1', candidates='CN2{V:1} S1{D:1} S2{IPV4_ADDRESS:1}'),
)
_example(
    'ancestors among sharing providers',
    """
CN[V:8] @S
R[M:8] {SHARE} @S
  X
    Y[D:10] {SHARE} @S
""",
    Row(
        query='resources=V:1&resources1=M:1&resources2=D:1&group_policy=none&same_subtree=1,2',
        candidates="CN{V:1} R{M:1} Y{D:1} (''=CN 1=R 2=Y)",
    ),
)

_example(
    'two trees',
    """
CN1[V:8]
  N1[VGPU:1] {T1}
CN2[V:8]
  N2[VGPU:1] {T1}
""",
    Row(query='resources=V:1&resources_B=VGPU:1&in_tree=CN1', candidates='CN1{V:1} N1{VGPU:1}'),
    Row(query='resources=V:1&in_tree=N1', candidates='CN1{V:1}'),
    Row(
        query='resources_A=V:1&resources_B=VGPU:1&group_policy=isolate&same_subtree=_A,_B',
        candidates='CN1{V:1} N1{VGPU:1}; CN2{V:1} N2{VGPU:1}',
    ),
)

_example(
    'isolated groups with overlapping options',
    """
R
  P1[VGPU:1] {A T1}
  P2[VGPU:1] {A B T1}
  P3[VGPU:1] {B}
""",
    Row(
        query=(
            'resources1=VGPU:1&required1=A&resources2=VGPU:1&required2=B'
            '&resources3=VGPU:1&required3=T1&group_policy=isolate'
        ),
        candidates=(
            'P1{VGPU:1} P2{VGPU:1} P3{VGPU:1} (1=P1 2=P3 3=P2); '
            'P1{VGPU:1} P2{VGPU:1} P3{VGPU:1} (1=P2 2=P3 3=P1)'
        ),
    ),
)

# In the next examples, the search skips providers that lead to no candidate. The candidates use
# providers that differ from skipped ones only in one property.
_example(
    'a provider is required by other groups',
    """
R
  A[V:3] {T1 T2}
  B[V:3] {T2}
  C[V:3] {T1}
""",
    Row(
        query=(
            'resources_X=V:3&required_X=T2&group_policy=none'
            '&resources_1=V:2&required_1=T1&resources_2=V:2&required_2=T1'
        ),
        candidates='A{V:2} B{V:3} C{V:2} (_X=B _1=A _2=C); A{V:2} B{V:3} C{V:2} (_X=B _1=C _2=A)',
    ),
)

_example(
    'a provider fails and succeeds in the same state',
    """
R
  A[V:4] {T1 T2}
  B[V:3] {T1}
  C[V:4] {T2}
""",
    Row(
        query=(
            'resources_X=V:4&required_X=T2&resources_Y=V:3&required_Y=T1&group_policy=none'
            '&resources_1=V:2&required_1=T1&resources_2=V:2&required_2=T1'
        ),
        candidates='A{V:4} B{V:3} C{V:4} (_X=C _Y=B _1=A _2=A)',
    ),
)

_example(
    'one of two equal providers is isolated, or has a required trait',
    """
A[V:1, VF:1] {T1}
  B[V:1, VF:1]
""",
    Row(
        query='resources=V:1&resources_1=V:1&resources_2=VF:1&group_policy=isolate',
        candidates=("A{V:1} B{V:1,VF:1} (''=B _1=A _2=B); A{V:1,VF:1} B{V:1} (''=A _1=B _2=A)"),
    ),
    Row(
        query='resources=V:1,VF:1&required=T1&resources_1=V:1,VF:1',
        candidates="A{V:1,VF:1} B{V:1,VF:1} (''=A _1=B)",
    ),
)

_example(
    'one of two equal providers is in the tree of another one',
    """
A[V:1] @A
  B[VF:2] @A
C[V:1] {SHARE} @A
  D[VF:1] {SHARE} @A
""",
    Row(
        query='resources=V:1&resources1=VF:1&resources2=VF:1&group_policy=none',
        candidates='C{V:1} B{VF:2}',
        minor=28,
    ),
)

GENERATION = worlds.World.of(
    '\n'.join(line for root in 'ABC' for line in (root, *(f'  {root}{n}[VF:4]' for n in range(3))))
)

CASES: tuple[Case, ...] = tuple(_CASES)

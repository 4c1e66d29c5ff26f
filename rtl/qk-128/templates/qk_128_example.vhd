-- How qk_128 is instantiated: copy component and instance, connect your own signals.
library ieee;
use ieee.std_logic_1164.all;

entity example is
  port (
    aclk : in  std_logic;
    aresetn : in  std_logic;
    s_axis_tdata : in  std_logic_vector(255 downto 0);
    s_axis_tvalid : in  std_logic;
    s_axis_tready : out std_logic;
    s_axis_tlast : in  std_logic;
    m_axis_tdata : out std_logic_vector(255 downto 0);
    m_axis_tvalid : out std_logic;
    m_axis_tready : in  std_logic;
    m_axis_tlast : out std_logic;
    s_axis_gamma_tdata : in  std_logic_vector(255 downto 0);
    s_axis_gamma_tvalid : in  std_logic;
    s_axis_gamma_tready : out std_logic;
    s_axis_gamma_tlast : in  std_logic;
    clear : in  std_logic;
    framing_error : out std_logic;
    saturated : out std_logic
  );
end entity;

architecture instance of example is
  component qk_128
    port (
      aclk : in  std_logic;
      aresetn : in  std_logic;
      s_axis_tdata : in  std_logic_vector(255 downto 0);
      s_axis_tvalid : in  std_logic;
      s_axis_tready : out std_logic;
      s_axis_tlast : in  std_logic;
      m_axis_tdata : out std_logic_vector(255 downto 0);
      m_axis_tvalid : out std_logic;
      m_axis_tready : in  std_logic;
      m_axis_tlast : out std_logic;
      s_axis_gamma_tdata : in  std_logic_vector(255 downto 0);
      s_axis_gamma_tvalid : in  std_logic;
      s_axis_gamma_tready : out std_logic;
      s_axis_gamma_tlast : in  std_logic;
      clear : in  std_logic;
      framing_error : out std_logic;
      saturated : out std_logic
    );
  end component;
begin
  norm : qk_128
    port map (
      aclk => aclk,
      aresetn => aresetn,
      s_axis_tdata => s_axis_tdata,
      s_axis_tvalid => s_axis_tvalid,
      s_axis_tready => s_axis_tready,
      s_axis_tlast => s_axis_tlast,
      m_axis_tdata => m_axis_tdata,
      m_axis_tvalid => m_axis_tvalid,
      m_axis_tready => m_axis_tready,
      m_axis_tlast => m_axis_tlast,
      s_axis_gamma_tdata => s_axis_gamma_tdata,
      s_axis_gamma_tvalid => s_axis_gamma_tvalid,
      s_axis_gamma_tready => s_axis_gamma_tready,
      s_axis_gamma_tlast => s_axis_gamma_tlast,
      clear => clear,
      framing_error => framing_error,
      saturated => saturated
    );
end architecture;
